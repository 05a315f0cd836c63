"""How many kernels a thread has launched: what a call wrote before it failed, nothing if it launched none."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

from verify.child.aiming import compiler


class _Launched(threading.local):
    number = 0


_launched = _Launched()


def launched() -> int:
    """Return how many kernels of kernel files this thread has launched."""
    return _launched.number


def count_those_of(module: ModuleType) -> None:
    """Count from now on the launches of the kernels that a kernel file defines."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    for kernel in vars(module).values():
        if isinstance(kernel, JITFunction | InterpretedFunction):
            _count(kernel)


def _count(kernel: Any) -> None:
    """Compilation fails before a launch, so a compiled kernel counts when it is launched, an interpreted one before."""
    compiled = bool(compiler())

    def run(*args: Any, warmup: bool, **kwargs: Any) -> Any:
        _launched.number += not (compiled or warmup)
        result = type(kernel).run(kernel, *args, warmup=warmup, **kwargs)
        _launched.number += compiled and not warmup
        return result

    kernel.run = run
