"""Control flow on the device `sim`: a branch or a loop of a higher-order operator is run as ordinary calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.flex_attention import flex_attention, sdpa_dense
from torch._higher_order_ops.map import map_dense, map_impl
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.while_loop import while_loop_op

from traces.live import tensors_in


def install(tensors: type[torch.Tensor]) -> None:
    """Make PyTorch's higher-order operators run on the device's tensors, with gradients if operands ask for them."""
    rules = (
        (cond_op, _cond),
        (while_loop_op, _while_loop),
        (map_impl, map_dense),
        (scan_op, _scan),
        (flex_attention, sdpa_dense),
    )
    _allow_flex_attention(tensors)
    for operator, run in rules:
        operator.py_impl(tensors)(run)
        usual = operator.py_kernels.pop(torch._C.DispatchKey.Autograd)
        operator.py_impl(torch._C.DispatchKey.Autograd)(_or(usual, run, tensors))


def _or(usual: Callable[..., Any], run: Callable[..., Any], tensors: type[torch.Tensor]) -> Callable[..., Any]:
    """Return the kernel that calls `run` if an operand is on the device, and PyTorch's own otherwise."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        on_device = any(isinstance(tensor, tensors) for tensor in tensors_in((args, kwargs)))
        return (run if on_device else usual)(*args, **kwargs)

    return kernel


def _cond(condition: Any, if_true: Callable[..., Any], if_false: Callable[..., Any], operands: Any) -> Any:
    return (if_true if condition else if_false)(*operands)


def _while_loop(goes_on: Callable[..., Any], body: Callable[..., Any], carried: Any, more: Any) -> Any:
    while goes_on(*carried, *more):
        carried = body(*carried, *more)
    return carried


def _scan(combine: Callable[..., Any], initial: Any, sequences: Any, more: Any) -> Any:
    carried, rows = initial, []
    for index in range(sequences[0].shape[0]):
        results = combine(*carried, *(sequence.select(0, index) for sequence in sequences), *more)
        carried = results[: len(initial)]
        rows.append(results[len(initial) :])
    return (*carried, *map(torch.stack, zip(*rows, strict=True)))


def _allow_flex_attention(tensors: type[torch.Tensor]) -> None:
    """Let `flex_attention` accept the device's tensors; PyTorch has a list of the devices that it accepts."""
    from torch.nn.attention import flex_attention as module

    usual = module._validate_device

    def validate(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        if not isinstance(query, tensors):
            usual(query, key, value)

    module._validate_device = validate
