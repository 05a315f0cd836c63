"""The dispatch mode of a recorder: it sees the ATen calls of one thread and hands them on to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from capture.signatures import call_token

if TYPE_CHECKING:
    from capture.recorder import Recorder

_TENSOR = (torch.Tensor,)
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_mode_of = torch._C._get_dispatch_mode


class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    supports_higher_order_operators = True  # the default makes torch.cond and flex_attention raise in the user's model

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Not by wrapping every call, which takes a fifth of its time: while recording nothing is compiled at all."""
        return False

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        recorder = self._recorder
        if recorder._steady and (not types or types == _TENSOR) and _mode_of(_FAKE) is None:
            try:  # in a steady state most calls are only counted, in as few steps of Python as possible
                count = recorder._tallies.count.get(call_token((id(func), recorder._phases.current()), args, kwargs))
            except Exception:  # noqa: BLE001 - met again, and counted, below
                count = None
            if count is not None:
                count()
                return func(*args, **(kwargs or {}))
        return self._record(func, types, args, kwargs or {})

    def _record(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _mode_of(_FAKE) is not None or FakeTensor in types:
            return func(*args, **kwargs)  # shapes without data
        for tensor_type in types:  # subclasses with a dispatch of their own desugar; what they call comes back here
            if tensor_type not in _PLAIN and tensor_type.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
                return NotImplemented
        plan = self._recorder._plan(func)
        if plan.composite:  # under inference_mode composite operators arrive whole
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        seen = self._recorder._before(plan, args, kwargs)
        if seen is None:
            return func(*args, **kwargs)
        returned = False
        try:
            result = func(*args, **kwargs)
            returned = True
        finally:
            if not returned:
                self._recorder._discard(seen)
        self._recorder._after(seen, result)
        return result
