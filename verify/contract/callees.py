"""Operators that a wrapper may ask of the library: answered by the library's kernels, never by ATen's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from torch._ops import OpOverload
from torch.overrides import TorchFunctionMode

from traces.overloads import name_of
from verify.contract.derive import call_direct

Wrapper = Callable[..., Any]


def serving(wrapper: Wrapper, callees: Mapping[str, Wrapper]) -> Wrapper:
    """The wrapper, whose own calls `torch.ops.aten.NAME.OVERLOAD(...)` of these overloads their wrappers answer.

    A callee is served with its own callees and no others. Whatever else is called goes on to PyTorch.
    """
    if not callees:
        return wrapper

    @wraps(wrapper)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _Serving(callees):
            return wrapper(*args, **kwargs)

    return run


class _Serving(TorchFunctionMode):
    """Comes before the dispatcher, and is off while a callee runs."""

    def __init__(self, callees: Mapping[str, Wrapper]) -> None:
        super().__init__()
        self._callees = callees

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        callee = self._callees.get(name_of(func)) if isinstance(func, OpOverload) else None
        if callee is None:
            return func(*args, **(kwargs or {}))
        return call_direct(func, callee, args, kwargs or {})
