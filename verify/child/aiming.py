"""Kernel files with a table of settings are told which device's are wanted."""

from __future__ import annotations

from types import ModuleType

import torch

_TARGET = "TUNING_TARGET"  # of the block `tuned`, which asks for what the device is


def aim(module: ModuleType) -> None:
    """Tell a kernel file that has a table of settings which target's are wanted."""
    if _TARGET in vars(module):
        vars(module)[_TARGET] = target()


def target() -> str:
    """What kernels are compiled for on the current device, such as sm_90; '' where this process uses no GPU."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return str(properties.gcnArchName) if torch.version.hip else f"sm_{properties.major}{properties.minor}"
