"""What is launched, as every child tells it: kernel, grid and arguments, in a line for each launch."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

import torch

from verify.child.guards import notes
from verify.child.loading import MODULE

_LONGEST = 60  # characters of one argument


def grid_of(grid: Any, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """The grid of a launch. A function is given what a GPU's launcher gives it: the arguments as they were passed, in a
    dict of its own, which it may change without changing the launch."""
    return tuple(grid(dict(arguments)) if callable(grid) else grid)


def note(kernel: str, grid: tuple[Any, ...], arguments: Mapping[str, Any]) -> None:
    """Note a launch, unless it is one of those by which an autotuner makes its choice."""
    told = ", ".join(f"{name}={_told(value)}" for name, value in sorted(arguments.items()))
    sizes = [int(n) for n in grid]
    notes.widest = max(notes.widest, *sizes[1:], 1)
    notes.launch(f"{kernel}[{', '.join(map(str, sizes + [1] * (3 - len(sizes))))}]({told})")


def passed(parameters: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a compiled kernel by name, with the defaults that it states."""
    left = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    return {p.name: given.get(p.name, left.get(p.name)) for p in parameters}


def patch_texts() -> None:
    """Have it noted when a kernel file asks for the text of a kernel, which tells who launches it."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction, KernelInterface

    def told(self: Any) -> str:
        name = str(getattr(self, "__name__", "a kernel"))
        if str(sys._getframe(1).f_globals.get("__name__")).startswith(MODULE):
            notes.operator(f"str of {name}")
        return f"<kernel {name}>"

    for kernels in (KernelInterface, JITFunction, InterpretedFunction):
        kernels.__repr__ = told


def _told(value: Any) -> str:
    """An argument: of a tensor its dtype and shape, of a kernel its name."""
    value = getattr(value, "base", value)  # of a descriptor, of a tensor seen in another dtype
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)}".removeprefix("torch.")
    if isinstance(value, tuple):
        return f"({', '.join(map(_told, value))})"
    if type(value).__name__ == "constexpr":
        return _told(value.value)
    text = str(getattr(value, "__name__", None) or repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
