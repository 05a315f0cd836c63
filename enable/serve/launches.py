"""Count the kernels that each thread launches, and set up the context in which it launches them.

A call that failed before its first launch has written nothing, so the server may decline it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import ModuleType
from typing import Any

import torch

from verify.child.aiming import compiler


class _Launched(threading.local):
    """The number of launches, one counter per thread."""

    number = 0


_launched = _Launched()


def launched() -> int:
    """Return how many kernels of kernel files this thread has launched."""
    return _launched.number


def count_those_of(module: ModuleType, options: Mapping[str, Any]) -> None:
    """Start counting the launches of all kernels that a kernel file defines.

    `options` are those of launches that do not state them themselves, such as num_warps.
    """
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    for kernel in vars(module).values():
        if isinstance(kernel, JITFunction | InterpretedFunction):
            _count(kernel, options)


def _count(kernel: Any, options: Mapping[str, Any]) -> None:
    """Wrap the kernel's `run` method with a counter.

    Compilation fails before the launch, so a compiled kernel counts after `run`. An interpreted kernel may fail midway,
    so it counts before.
    """
    compiled = bool(compiler())

    def run(*args: Any, warmup: bool, **kwargs: Any) -> Any:
        _launched.number += not (compiled or warmup)
        result = type(kernel).run(kernel, *args, warmup=warmup, **{**options, **kwargs})
        _launched.number += compiled and not warmup
        return result

    kernel.run = run


def surroundings(device: str, interpreted: bool, index: int | None) -> AbstractContextManager[Any]:
    """Return the context for launches: the tensors' device is current, and NumPy does not warn of infinities.

    Launches go to the current device. Triton's interpreter computes with NumPy.
    """
    quiet: AbstractContextManager[Any] = nullcontext()
    if interpreted:
        import numpy as np

        quiet = np.errstate(all="ignore")
    if device == "cpu" or index is None or index == torch.accelerator.current_device_index():
        return quiet
    stack = ExitStack()
    stack.enter_context(quiet)
    stack.enter_context(torch.accelerator.device_index(index))
    return stack
