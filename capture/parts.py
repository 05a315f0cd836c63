"""Decomposition for calls to composite and higher-order operators, so that their parts are recorded instead.

Each decomposition is the kernel that the dispatcher itself would choose, so it does not change the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, TypeAlias

import torch
from torch._ops import HigherOrderOperator, OpOverload, resolve_key
from torch.utils._pytree import tree_leaves

from traces.overloads import in_python

Parts: TypeAlias = Callable[..., Any]

_KEYS = torch._C.DispatchKey
_NESTED = _KEYS.CompositeImplicitAutogradNestedTensor
_COMPOSITE = (_KEYS.CompositeImplicitAutograd, _NESTED)
# Kernels that run no ATen operators which could represent the call, or that refuse to run under a dispatch mode.
_OPAQUE = ("triton_kernel_wrapper", "call_torchbind", "executorch_call_delegate", "aoti_call_delegate", "print")
_REFUSING = ("invoke_subgraph", "strict_mode")


def is_divisible(op: Any) -> bool:
    """Return True if some calls of the operator run by other operators."""
    if isinstance(op, OpOverload):
        return in_python(op) is not None or any(map(op.has_kernel_for_dispatch_key, _COMPOSITE))
    return isinstance(op, HigherOrderOperator) and not op._name.startswith((*_OPAQUE, *_REFUSING))


def parts_of(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts | None:
    """Return the function that runs this call by other operators, or None if the device runs it as a whole.

    A device runs a composite operator as a whole if it has its own kernel, as the CPU has for silu_backward. Composite
    operators arrive here under inference_mode; otherwise autograd decomposes them earlier.
    """
    if not isinstance(op, OpOverload):
        return _higher_order(op, args, kwargs)
    key = _kernel_key(op, _keys_of((*args, *kwargs.values())))
    if key == _NESTED:
        return partial(op._op_dk, _NESTED)
    return op.decompose if key in _COMPOSITE else in_python(op)


def _higher_order(op: HigherOrderOperator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Parts | None:
    if op._name in _WITHOUT_CHECK:
        return _WITHOUT_CHECK[op._name]
    key = _kernel_key(op, _keys_of(tree_leaves((args, kwargs))))
    kernel = None if key is None else op.py_kernels.get(key)
    return kernel if callable(kernel) else None


def _cond(pred: Any, true_fn: Parts, false_fn: Parts, operands: Iterable[Any]) -> Any:
    return (true_fn if pred else false_fn)(*operands)


def _scan(combine_fn: Parts, init: Any, xs: Any, additional_inputs: Any) -> Any:
    from torch._higher_order_ops.scan import generic_scan

    return generic_scan(combine_fn, init, xs, additional_inputs=additional_inputs)  # type: ignore[no-untyped-call]


# PyTorch's dense kernels for these operators, without the assertion that no dispatch mode is active.
_WITHOUT_CHECK: dict[str, Parts] = {"cond": _cond, "scan": _scan}


def _keys_of(values: Iterable[Any]) -> int:
    keys = torch._C.DispatchKeySet(_KEYS.Undefined)
    for value in values:
        for t in value if isinstance(value, list | tuple) else (value,):
            keys = keys | torch._C._dispatch_keys(t) if isinstance(t, torch.Tensor) else keys
    raw: int = keys.raw_repr()
    return raw


@cache
def _kernel_key(op: Any, keys: int) -> torch._C.DispatchKey | None:
    """Return the dispatch key whose kernel runs for tensors with these keys, below autograd and similar."""
    key_set = torch._C.DispatchKeySet.from_raw_repr(keys)
    while (key := key_set.highestPriorityTypeId()) != _KEYS.Undefined and not _is_of_backend(key):
        key_set = key_set.remove(key)
    try:
        kernel: torch._C.DispatchKey = resolve_key(op, key)
        return kernel
    except NotImplementedError:
        return None


def _is_of_backend(key: torch._C.DispatchKey) -> bool:
    """Return True for the key of a device and layout. The alias of dense keys omits nested tensors."""
    nested = key.name.startswith("NestedTensor")
    return nested or torch._C._dispatch_is_included_in_alias(key, _KEYS.CompositeExplicitAutograd)
