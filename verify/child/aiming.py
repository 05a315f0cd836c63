"""Kernel files with a table of settings are told which device's are wanted, and which Triton compiles them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import torch

_TARGET = "TUNING_TARGET"  # of the block `tuned`, which asks for what the device is
_TRITON = "TRITON"  # of the same module, for blocks that are written in what few versions have


def aim(module: ModuleType, target: str) -> None:
    """Tell a kernel file that has settings by target which target's are wanted, and what compiles it."""
    if _TARGET in vars(module):
        vars(module)[_TARGET] = target
    if _TRITON in vars(module):
        vars(module)[_TRITON] = compiler()


def compiler() -> str:
    """Triton's version, such as 3.9, where it compiles kernels; `""` where it interprets them."""
    triton = sys.modules["triton"]
    if type(triton.language.softmax).__name__ == "InterpretedFunction":
        return ""
    return ".".join(triton.__version__.split(".")[:2])


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
