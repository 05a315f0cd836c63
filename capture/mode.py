"""The recorder's dispatch mode: it sees the ATen calls of one thread and passes them to the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from capture import sim
from capture.parts import Parts, parts_of
from capture.plans import HIGHER_ORDER, CapturePlan
from capture.steps import running_backward
from capture.unseen import function_modes

if TYPE_CHECKING:
    from capture.observer import Observer

_TENSOR = (torch.Tensor,)
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
_FAKE = torch._C._TorchDispatchModeKey.FAKE
_mode_of = torch._C._get_dispatch_mode
_modes_beneath = torch._C._len_torch_dispatch_stack


class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The dispatch mode that a recorder installs in each thread that enters it."""

    supports_higher_order_operators = True  # with the default, torch.cond and flex_attention raise in the user's model

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let higher-order operators capture their functions (see capture/stance.py); nothing else is compiled."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, so that PyTorch does not wrap every call, which would cost a fifth of the call's time.

        While recording, nothing is compiled anyway.
        """
        return False

    def __init__(self, recorder: Observer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder
        self._phases = recorder._phases

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        known = self._recorder._steady
        if (
            known is not None
            and (not types or types == _TENSOR)
            and (not _modes_beneath() or _mode_of(_FAKE) is None)
            and not function_modes()  # function modes would see the attribute accesses that compute keys
        ):
            phases = self._phases
            try:  # in a steady state most calls are only counted, so this path is kept as short as possible
                find = known[phases.elsewhere if running_backward() == -1 else phases.in_backward][id(func)]
                count = find(*args, **kwargs) if kwargs else find(*args)
            except Exception:  # noqa: BLE001 - unknown, or raised again and counted below
                count = None
            if count is not None:
                count()
                # Calling `func` does the same, with more Python overhead.
                return func._op(*args, **kwargs) if kwargs else func._op(*args)
        return self._record(func, types, args, kwargs or {})

    def _record(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _mode_of(_FAKE) is not None or FakeTensor in types:
            return func(*args, **kwargs)  # fake tensors have shapes but no data
        recorder = self._recorder
        plan = recorder._plan(func)
        if plan.skipped == "":  # a marker
            recorder._before(plan, args, kwargs)
            return func(*args, **kwargs)
        for tensor_type in types:  # subclasses with their own dispatch desugar first; their inner calls come back here
            if tensor_type not in _PLAIN and tensor_type.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
                return NotImplemented
        if plan.question:
            return func(*args, **kwargs)
        arriving = sim.arriving(func, kwargs)
        if arriving is not None:  # calls that create a tensor on `sim` desugar as well
            with self:
                return arriving(*args, **kwargs)
        parts = self._parts(plan, args, kwargs) if plan.divisible else None
        if parts is not None:
            return self._in_parts(plan, parts, args, kwargs)
        pending = recorder._before(plan, args, kwargs)
        if pending is None:
            return func(*args, **kwargs)
        returned = False
        try:
            result = sim.compute(func, args, kwargs)
            returned = True
        finally:
            if not returned:
                recorder._discard(pending)
        recorder._after(pending, result)
        return result

    def _parts(self, plan: CapturePlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts | None:
        alone = plan.skipped != HIGHER_ORDER or all(isinstance(m, Mode) for m in _get_current_dispatch_mode_stack())
        if not alone:
            return None  # the program's own mode must see the higher-order operator, and the parts then go to that mode
        try:
            return parts_of(plan.op, args, kwargs)
        except Exception as error:  # noqa: BLE001 - an error in the recorder is never raised
            self._recorder._note(plan.name, error)
            return None

    def _in_parts(self, plan: CapturePlan, parts: Parts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the operators that a call decomposes into.

        If that raises but the call as a whole does not, the error is the recorder's.
        """
        if plan.skipped == HIGHER_ORDER:
            self._recorder._skip(plan)
        try:
            with self:
                return parts(*args, **kwargs)
        except Exception as error:
            if plan.effects:  # the call must not run twice
                raise
            failed = error
        result = plan.op(*args, **kwargs)  # raises if the program's own call does
        self._recorder._note(plan.name, failed)
        return result
