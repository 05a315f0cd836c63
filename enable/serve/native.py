"""Launch kernels natively: build and load the C++ module of enable/serve/cpp and pass programs to it.

The module is built once per PyTorch version. Calls go through Python, with the same results, if there is no compiler,
if this Triton version is untested, or if ENABLE_NATIVE=0.
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
from traces.errors import UserError

WAY = NativeModule("enablekit_native", Path(__file__).parent / "cpp", "the native way to launch")


class Native:
    """The loaded native module and the operations on it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def wanted(self) -> bool:
        """Return True if the call being answered has no program and could use one."""
        return bool(self._module.wanted())

    def deposit(self, program: Any, looked: Looked) -> None:
        """Let a program answer later calls like the current one, which `looked` describes."""
        self._module.deposit(program, [t.data_ptr() for t in looked.tensors], looked.floats)

    def program(self, op: OpOverload, shortcut: Shortcut, of_all: General | None = None) -> Any:
        """Build the program that answers an overload's calls as this shortcut does.

        `of_all` is set if the program shall also serve calls with other floats. Return None if the shortcut has no
        native form.
        """
        try:
            return program(self._module, shortcut, [str(r.type) for r in op._schema.returns], of_all)
        except Foreign:
            return None

    def graph(self, shortcut: Shortcut) -> Any:
        """Build the program for a shortcut that covers many calls and returns a list of tensors, or None."""
        try:
            return program(self._module, shortcut, ["Tensor"] * len(shortcut.result))
        except Foreign:
            return None

    @contextmanager
    def before(self, ops: Iterable[tuple[OpOverload, str]]) -> Iterator[None]:
        """Answer calls to these (overload, dispatch key) pairs natively inside the block, before Python gets them."""
        with ExitStack() as stack:
            stack.enter_context(launchers(self._module))
            for op, key in ops:
                installed = self._module.install(op._schema.name, op._schema.overload_name, key)
                stack.callback(installed.undo)
            yield


def load(directory: Path) -> Native:
    """Load the native module, and build it in this directory first if necessary.

    Raises:
        Unavailable: The module cannot be built or used here.
    """
    if reason := _untried():
        raise Unavailable(reason)
    return Native(WAY.load(directory))


def state(directory: Path) -> str:
    """Return the state of the native launcher in words; builds nothing."""
    if reason := _untried() or why_not():
        return f"calls go the way of Python: {reason}"
    return "built" if WAY.built_path(directory).is_file() else "to be built at the first registration on a GPU"


def _untried() -> str:
    """Return why this Triton or torch version is unsupported; empty if it is supported."""
    if not triton_is(TRIED):
        import triton

        return f"Triton {triton.__version__} was not tried; {' and '.join(TRIED)} were"
    return "" if hasattr(torch.library, "get_kernel") else f"torch {torch.__version__} is older than 2.10"


def native_way(device: str, wanted: bool | None, directory: Path) -> Native | None:
    """Return the native launcher, or None if it is unavailable or not wanted.

    Raises:
        UserError: It is wanted explicitly but unavailable.
    """
    if device != "cuda" or wanted is False:
        if wanted:
            raise UserError(f"native on {device}: kernels are launched without Python on cuda alone; leave native out")
        return None
    try:
        return load(directory)
    except Unavailable as error:
        if wanted:
            raise UserError(f"no native way to launch: {error}; leave native out") from error
        return None
