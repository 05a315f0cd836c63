"""The native way to launch: the module of enable/serve/cpp, built once for each PyTorch, and what it is told.

Without a compiler, with a Triton that was not tried or with ENABLE_NATIVE=0 every call goes the way of Python, which
answers the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload

from capture.compiled import NativeModule, Unavailable, why_not
from enable.serve.floats import General
from enable.serve.modules import triton_is
from enable.serve.programs import Foreign, launchers, program
from enable.serve.shortcuts import TRIED, Looked, Shortcut

WAY = NativeModule("enablekit_native", Path(__file__).parent / "cpp", "the native way to launch")


class Native:
    """The module, and what it is given."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def wanted(self) -> bool:
        """Whether the call that is being answered may be given a program, and has none."""
        return bool(self._module.wanted())

    def deposit(self, program: Any, looked: Looked) -> None:
        """Have a program answer later calls like the one that is being answered, which is this."""
        self._module.deposit(program, [t.data_ptr() for t in looked.tensors], looked.floats)

    def program(self, op: OpOverload, shortcut: Shortcut, of_all: General | None = None) -> Any:
        """What answers calls of an overload as this shortcut does, None if it has no such form. of_all: where it is for
        calls with other floats, too."""
        try:
            return program(self._module, shortcut, [str(r.type) for r in op._schema.returns], of_all)
        except Foreign:
            return None

    def graph(self, shortcut: Shortcut) -> Any:
        """The same of a shortcut for many calls, which returns a list of tensors."""
        try:
            return program(self._module, shortcut, ["Tensor"] * len(shortcut.result))
        except Foreign:
            return None

    @contextmanager
    def before(self, ops: Iterable[tuple[OpOverload, str]]) -> Iterator[None]:
        """Inside the block calls of these overloads under these dispatch keys are looked at before Python is."""
        with ExitStack() as stack:
            stack.enter_context(launchers(self._module))
            for op, key in ops:
                installed = self._module.install(op._schema.name, op._schema.overload_name, key)
                stack.callback(installed.undo)
            yield


def load(directory: Path) -> Native:
    """The native way, built in this directory if it is not there. Raises Unavailable if it cannot be had."""
    if reason := _untried():
        raise Unavailable(reason)
    return Native(WAY.load(directory))


def state(directory: Path) -> str:
    """Whether calls on a GPU take the native way, in words; builds nothing."""
    if reason := _untried() or why_not():
        return f"calls go the way of Python: {reason}"
    return "built" if WAY.place(directory).is_file() else "to be built at the first registration on a GPU"


def _untried() -> str:
    if not triton_is(TRIED):
        import triton

        return f"Triton {triton.__version__} was not tried; {' and '.join(TRIED)} were"
    return "" if hasattr(torch.library, "get_kernel") else f"torch {torch.__version__} is older than 2.10"
