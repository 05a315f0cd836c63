"""Kernel files with a table of settings are told which device's are wanted."""

from __future__ import annotations

from types import ModuleType

import torch

_TARGET = "TUNING_TARGET"  # of the block `tuned`, which asks for what the device is


def aim(module: ModuleType, target: str) -> None:
    """Tell a kernel file that has a table of settings which target's are wanted."""
    if _TARGET in vars(module):
        vars(module)[_TARGET] = target


def target(index: int | None = None) -> str:
    """What kernels are compiled for on a GPU, such as sm_90; on the current one of a process that uses any, else ''."""
    if index is None and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index)
    return str(properties.gcnArchName) if torch.version.hip else f"sm_{properties.major}{properties.minor}"
