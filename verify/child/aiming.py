"""Kernel files with a table of settings are told which device's are wanted."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import torch

_TARGET = "TUNING_TARGET"  # of the block `tuned`, which asks for what the device is


def aim(module: ModuleType, target: str) -> None:
    """Tell a kernel file that has settings by target which target's are wanted."""
    if _TARGET in vars(module):
        vars(module)[_TARGET] = target


def has_settings(sources: Iterable[str]) -> bool:
    """Whether one of these files has settings by target."""
    return any(_TARGET in source for source in sources)


def name_of(target: dict[str, Any]) -> str:
    """How kernel files name a platform's target."""
    return f"sm_{target['arch']}" if target["backend"] == "cuda" else str(target["arch"])


def target(index: int | None = None) -> str:
    """What kernels are compiled for on a GPU, such as sm_90; on the current one of a process that uses any, else ''."""
    if index is None and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index)
    return str(properties.gcnArchName) if torch.version.hip else f"sm_{properties.major}{properties.minor}"
