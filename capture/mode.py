"""The dispatch mode of a recorder: it sees the ATen calls of one thread and hands them on to it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch._ops import OpOverload, resolve_key
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from capture import sim
from capture.steps import running_backward
from traces.overloads import in_python

if TYPE_CHECKING:
    from capture.recorder import Recorder

_TENSOR = (torch.Tensor,)
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_mode_of = torch._C._get_dispatch_mode
_modes_beneath = torch._C._len_torch_dispatch_stack
_KEYS = torch._C.DispatchKey
_COMPOSITE = (_KEYS.CompositeImplicitAutograd, _KEYS.CompositeImplicitAutogradNestedTensor)


class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True  # the default makes torch.cond and flex_attention raise in the user's model

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Not by wrapping every call, which takes a fifth of its time: while recording nothing is compiled at all."""
        return False

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder
        self._phases = recorder._phases

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        known = self._recorder._steady
        if known is not None and (not types or types == _TENSOR) and (not _modes_beneath() or _mode_of(_FAKE) is None):
            phases = self._phases
            try:  # in a steady state most calls are only counted, in as few steps of Python as possible
                find = known[phases.elsewhere if running_backward() == -1 else phases.in_backward][id(func)]
                count = find(*args, **kwargs) if kwargs else find(*args)
            except Exception:  # noqa: BLE001 - unknown, or met again, and counted, below
                count = None
            if count is not None:
                count()
                return func._op(*args, **kwargs) if kwargs else func._op(*args)  # what calling `func` does
        return self._record(func, types, args, kwargs or {})

    def _record(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _mode_of(_FAKE) is not None or FakeTensor in types:
            return func(*args, **kwargs)  # shapes without data
        plan = self._recorder._plan(func)
        if plan.skipped == "":  # a marker
            self._recorder._before(plan, args, kwargs)
            return func(*args, **kwargs)
        for tensor_type in types:  # subclasses with a dispatch of their own desugar; what they call comes back here
            if tensor_type not in _PLAIN and tensor_type.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
                return NotImplemented
        arriving = sim.arriving(func, kwargs)
        if arriving is not None:  # likewise
            with self:
                return arriving(*args, **kwargs)
        if plan.composite and in_parts(func, args, kwargs):  # under inference_mode such operators arrive whole
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        parts = in_python(func) if isinstance(func, OpOverload) else None
        if parts is not None:  # whole on every device, which runs what it calls
            with self:
                return parts(*args, **kwargs)
        seen = self._recorder._before(plan, args, kwargs)
        if seen is None:
            return func(*args, **kwargs)
        returned = False
        try:
            result = sim.compute(func, args, kwargs)
            returned = True
        finally:
            if not returned:
                self._recorder._discard(seen)
        self._recorder._after(seen, result)
        return result


def in_parts(func: OpOverload, args: Iterable[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the device that runs this call of a composite operator would do so by other operators.

    A device with a kernel of its own for it, as the CPU has for silu_backward, is asked for the whole.
    """
    keys = torch._C.DispatchKeySet(_KEYS.Undefined)
    for value in (*args, *kwargs.values()):
        for t in value if isinstance(value, list | tuple) else (value,):
            keys = keys | torch._C._dispatch_keys(t) if isinstance(t, torch.Tensor) else keys
    return _kernel_key(func, keys.raw_repr()) in _COMPOSITE


@cache
def _kernel_key(func: OpOverload, keys: int) -> torch._C.DispatchKey | None:
    """Under which key the dispatcher finds the kernel for tensors with these keys, below autograd and the like."""
    found = torch._C.DispatchKeySet.from_raw_repr(keys)
    while (key := found.highestPriorityTypeId()) != _KEYS.Undefined:
        if torch._C._dispatch_is_included_in_alias(key, _KEYS.CompositeExplicitAutograd):  # a backend's
            break
        found = found.remove(key)
    try:
        kernel: torch._C.DispatchKey = resolve_key(func, key)
        return kernel
    except NotImplementedError:
        return None
