"""Set the tuning target and the Triton version in kernel files that have a table of settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import torch

_TARGET = "TUNING_TARGET"  # name in the block `tuned`, which reads the target device from it
_TRITON = "TRITON"  # name in the same module, for blocks that need features of certain Triton versions


def aim(module: ModuleType, target: str) -> None:
    """Set the target and the compiler version in a kernel file that has settings by target."""
    if _TARGET in vars(module):
        vars(module)[_TARGET] = target
    if _TRITON in vars(module):
        vars(module)[_TRITON] = compiler()


def compiler() -> str:
    """Return Triton's version, such as 3.9, if it compiles kernels; `""` if it interprets them."""
    triton = sys.modules["triton"]
    if type(triton.language.softmax).__name__ == "InterpretedFunction":
        return ""
    return ".".join(triton.__version__.split(".")[:2])


def has_settings(sources: Iterable[str]) -> bool:
    """Return True if one of these files has settings by target."""
    return any(_TARGET in source for source in sources)


def name_of(target: dict[str, Any]) -> str:
    """Return the name that kernel files use for a platform's target."""
    return f"sm_{target['arch']}" if target["backend"] == "cuda" else str(target["arch"])


def target(index: int | None = None) -> str:
    """Return the architecture that kernels are compiled for on a GPU, such as sm_90.

    Args:
        index: GPU index. None selects the current one if this process uses a GPU; otherwise the result is ''.
    """
    if index is None and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device() if index is None else index)
    return str(properties.gcnArchName) if torch.version.hip else f"sm_{properties.major}{properties.minor}"
