"""Tensors filled with one value or with the elements of another tensor."""

import torch
from blocks.arithmetic import identity
from blocks.elementwise import elementwise


def as_bits(*tensors):
    """Return the tensors viewed as int16 if all are fp16 or all are bf16, else unchanged.

    A move without arithmetic then keeps every bit, including NaN payloads.
    """
    dtypes = {t.dtype for t in tensors}
    halves = len(dtypes) == 1 and dtypes <= {torch.float16, torch.bfloat16}
    return [t.view(torch.int16) for t in tensors] if halves else list(tensors)


def fill(out, value):
    """Fill `out` with a number or with a broadcast tensor, converted to its dtype, and return it.

    Floats become uint8 by way of int64, as in ATen: -1 is 255 on every device.
    """
    if isinstance(value, torch.Tensor):
        value, target = as_bits(value, out)
        common = torch.int64 if value.is_floating_point() and out.dtype == torch.uint8 else target.dtype
        elementwise(identity, value, common=common, out=target)
        return out
    return elementwise(identity, value, common=out.dtype, out=out)


def new_full(size, value, dtype, device):
    """Return a new tensor filled with one value."""
    return fill(torch.empty(size, dtype=dtype, device=device), value)


def full_as(like, value, dtype, device, memory_format):
    """Return a new tensor filled with one value, in the layout of another tensor."""
    memory_format = memory_format or torch.preserve_format
    return fill(torch.empty_like(like, dtype=dtype, device=device, memory_format=memory_format), value)
