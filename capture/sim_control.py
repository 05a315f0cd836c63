"""Control flow on the device `sim`: a branch or a loop of a higher-order operator is run as ordinary calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.while_loop import while_loop_op

from traces.live import tensors_in


def install(tensors: type[torch.Tensor]) -> None:
    """Make `torch.cond` and `while_loop` run on the device's tensors, with gradients where operands ask for them."""
    for operator, run in ((cond_op, _cond), (while_loop_op, _while_loop)):
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
