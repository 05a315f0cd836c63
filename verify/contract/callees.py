"""Library operators that a wrapper may call; the library's kernels answer these calls, never ATen's."""

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
    """Return the wrapper with its `torch.ops.aten.NAME.OVERLOAD(...)` calls redirected to the callees.

    Args:
        wrapper: The wrapper that makes the calls.
        callees: Wrappers by overload name. Each is served with its own callees and no others. All other calls
            go to PyTorch.
    """
    if not callees:
        return wrapper

    @wraps(wrapper)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _Serving(callees):
            return wrapper(*args, **kwargs)

    return run


class _Serving(TorchFunctionMode):
    """Function mode that redirects calls before the dispatcher sees them. It is inactive while a callee runs."""

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
