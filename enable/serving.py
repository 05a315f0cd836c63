"""Answer ATen calls in this process with Triton kernels: which kernel, whether it may, and what was served how often.

Nothing here knows a kernel library or a store of verdicts (enable/library.py does), so that exported packages run the
same code.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._ops import OpOverload

from traces.errors import UserError
from traces.overloads import bind, name_of
from verify.derive import Plan, call

NO_KERNEL = "no kernel"
NOT_VERIFIED = "not verified"
ELSEWHERE = "arguments on another device"
NUMBER = "a number in the place of a tensor"
SPARSE = "sparse arguments, and kernels take strided ones"
NO_FLOATS = ""  # stands for the calls that have no floating dtype


@dataclass(frozen=True)
class Entry:
    """How one overload is served.

    kernel: the kernel file. copy: the file of the `aten::copy_` kernel, where the plan needs it. label: the kernel file
    as reports show it. listed: the dtypes that the kernel claims, by name. verified: the floating ones for which it may
    be used, and NO_FLOATS where it may be for calls without any.
    """

    plan: Plan
    kernel: Path
    takes_out: bool
    copy: Path | None
    label: str
    listed: frozenset[str]
    verified: frozenset[str]

    def objection(self, dtypes: frozenset[str]) -> str:
        """Why it does not serve calls with these floating dtypes; empty if it does."""
        unlisted, unverified = sorted(dtypes - self.listed), sorted((dtypes or {NO_FLOATS}) - self.verified)
        if unlisted:
            return f"the kernel's DTYPES do not list {', '.join(unlisted)}"
        if unverified and dtypes:
            return f"{NOT_VERIFIED} for {', '.join(unverified)}"
        return f"{NOT_VERIFIED} without floating dtypes" if unverified else ""


@dataclass
class Counts:
    """Calls. served: by overload. kernels: those by kernel file. unserved: by overload, and then by reason."""

    served: Counter[str] = field(default_factory=Counter)
    kernels: Counter[str] = field(default_factory=Counter)
    unserved: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


class Server:
    """Serves calls on one device. A call that a running kernel's wrapper makes is not served: it would never end."""

    def __init__(self, entry_of: Callable[[str], Entry | None], device: str) -> None:
        """entry_of: how an overload is served, None if it is not. device: type of the tensors; `cpu` is `sim`'s too.

        Raises UserError if Triton was imported to compile where it has to interpret, or the other way round.
        """
        _set_up_triton(interpreted=device == "cpu")
        self.counts = Counts()
        self._entry_of = cache(entry_of)
        self._wrapper_of = cache(_load_wrapper)
        self._objections: dict[tuple[str, frozenset[str]], str] = {}
        self._device = device
        self._running = threading.local()

    def find(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
        """What runs this call on a kernel, or None if it is not served. Both are counted."""
        if getattr(self._running, "deep", False):
            return None
        overload = name_of(op)
        entry = self._entry_of(overload)
        seen = _Seen(self._device, op, args, kwargs)
        reason = self._reason(overload, entry, seen)
        if entry is None or reason:
            self.counts.unserved[overload][reason] += 1
            return None
        self.counts.served[overload] += 1
        self.counts.kernels[entry.label] += 1
        return lambda: self._run(entry, bind(op, args, kwargs), seen.index)

    def reason(self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Why such a call is not served; empty if it is."""
        overload = name_of(op)
        return self._reason(overload, self._entry_of(overload), _Seen(self._device, op, args, kwargs))

    def _reason(self, overload: str, entry: Entry | None, seen: _Seen) -> str:
        if entry is None:
            return NO_KERNEL
        if seen.number:
            return NUMBER
        return seen.elsewhere or self._objection(overload, entry, frozenset(seen.dtypes))

    def _objection(self, overload: str, entry: Entry, dtypes: frozenset[str]) -> str:
        key = (overload, dtypes)
        if key not in self._objections:
            self._objections[key] = entry.objection(dtypes)
        return self._objections[key]

    def _run(self, entry: Entry, arguments: dict[str, Any], index: int | None) -> Any:
        wrapper = self._wrapper_of(entry.kernel)
        copy = self._wrapper_of(entry.copy) if entry.copy else None
        self._running.deep = True
        try:
            with torch._C._AutoDispatchBelowAutograd(), _surroundings(self._device, index):
                return call(entry.plan, arguments, wrapper, entry.takes_out, copy)
        finally:
            self._running.deep = False


class _Seen:
    """What decides whether a call is served: where its arguments are, and which floating dtypes they name.

    number: the first argument is a tensor by the schema, and here a number. Kernels know that of later operands alone.
    """

    def __init__(self, device: str, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._device = device
        self.number = bool(args) and is_number(args[0]) and 0 in tensor_places(op)
        self.dtypes: set[str] = set()
        self.elsewhere = ""
        self.index: int | None = None  # of the device
        self._look(args)
        self._look(kwargs.values())

    def _look(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                self._device_is(value.device)
                self._dtype_is(value.dtype)
                if value.layout is not torch.strided:
                    self.elsewhere = SPARSE
            elif isinstance(value, list | tuple):
                self._look(value)
            elif isinstance(value, torch.device):
                self._device_is(value)
            elif isinstance(value, torch.dtype):
                self._dtype_is(value)
            elif isinstance(value, complex):
                self.dtypes.add("complex")

    def _device_is(self, device: torch.device) -> None:
        if device.type != self._device:
            self.elsewhere = ELSEWHERE
        self.index = device.index if self.index is None else self.index

    def _dtype_is(self, dtype: torch.dtype) -> None:
        if dtype.is_floating_point or dtype.is_complex:
            self.dtypes.add(_dtype_name(dtype))


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex)


@cache
def tensor_places(op: OpOverload) -> frozenset[int]:
    """Positions of the arguments that are tensors, or may be."""
    types = enumerate(str(a.type) for a in op._schema.arguments)
    return frozenset(i for i, text in types if text in ("Tensor", "Optional[Tensor]"))


@cache
def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _surroundings(device: str, index: int | None) -> AbstractContextManager[Any]:
    """Launches go to the current GPU, so the arguments' has to be it; NumPy, which interprets, warns of infinities."""
    if device == "cpu":
        import numpy as np

        return np.errstate(all="ignore")
    if index is None or index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(index)


def _load_wrapper(path: Path) -> Callable[..., Any]:
    """The wrapper of a kernel file, which is imported from where it lies."""
    name = f"enable_kernel_{path.stem}_{abs(hash(path)):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Triton looks a kernel's module up by name
    spec.loader.exec_module(module)
    wrapper: Callable[..., Any] = module.wrapper
    return wrapper


def _set_up_triton(interpreted: bool) -> None:
    """Import Triton so that kernels are interpreted, or compiled; it decides that once, when it is imported."""
    if "triton" not in sys.modules and interpreted:
        os.environ["TRITON_INTERPRET"] = "1"
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as where kernels are judged
    import triton.language

    found = type(triton.language.softmax).__name__ == "InterpretedFunction"
    if found != interpreted:
        must = "interpret kernels: set TRITON_INTERPRET=1" if interpreted else "compile kernels: unset TRITON_INTERPRET"
        raise UserError(f"Triton has to {must} before Python starts")
    if interpreted:
        _mend_interpreter()


@cache
def _mend_interpreter() -> None:
    """Triton 3.6 takes `int()` of an array of one element for a loop's bound, which NumPy 2.5 refuses."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor: Any, *rest: Any) -> None:
        patch(tensor, *rest)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor
