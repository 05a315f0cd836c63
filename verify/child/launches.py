"""Describe launches in the same form in every child: kernel, grid and arguments, one line for each launch."""

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
    """Return the grid of a launch.

    A grid function gets the arguments as passed, as on a GPU. It gets its own dict, so it cannot change the
    launch.
    """
    return tuple(grid(dict(arguments)) if callable(grid) else grid)


def note(kernel: str, grid: tuple[Any, ...], arguments: Mapping[str, Any]) -> None:
    """Record a launch, unless it belongs to the search of an autotuner."""
    described = ", ".join(f"{name}={_described(value)}" for name, value in sorted(arguments.items()))
    sizes = [int(n) for n in grid]
    notes.widest = max(notes.widest, *sizes[1:], 1)
    notes.launch(f"{kernel}[{', '.join(map(str, sizes + [1] * (3 - len(sizes))))}]({described})")


def passed(parameters: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a compiled kernel by name, including its declared defaults."""
    defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    return {p.name: values.get(p.name, defaults.get(p.name)) for p in parameters}


def patch_texts() -> None:
    """Record an operator if a kernel file asks for a kernel's text, which could reveal who launches it."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction, KernelInterface

    def kernel_repr(self: Any) -> str:
        name = str(getattr(self, "__name__", "a kernel"))
        if str(sys._getframe(1).f_globals.get("__name__")).startswith(MODULE):
            notes.operator(f"str of {name}")
        return f"<kernel {name}>"

    for kernels in (KernelInterface, JITFunction, InterpretedFunction):
        kernels.__repr__ = kernel_repr


def _described(value: Any) -> str:
    """Describe an argument: a tensor by its dtype and shape, a kernel by its name."""
    value = getattr(value, "base", value)  # a descriptor's tensor, or a tensor reinterpreted in another dtype
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}{list(value.shape)}".removeprefix("torch.")
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    if type(value).__name__ == "constexpr":
        return _described(value.value)
    text = str(getattr(value, "__name__", None) or repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
