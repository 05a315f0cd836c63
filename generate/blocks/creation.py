"""Tensors filled with one value or with the elements of another tensor."""

import torch
from blocks.arithmetic import identity
from blocks.elementwise import elementwise


def fill(out, value):
    """`out`, filled with a number or with the elements of a tensor, which is broadcast, in its type.

    Floats are bytes by way of int64, as in ATen: -1 is 255 on every device.
    """
    floats = isinstance(value, torch.Tensor) and value.is_floating_point()
    common = torch.int64 if floats and out.dtype == torch.uint8 else out.dtype
    return elementwise(identity, value, common=common, out=out)


def new_full(size, value, dtype, device):
    return fill(torch.empty(size, dtype=dtype, device=device), value)


def full_as(like, value, dtype, device, memory_format):
    """A new tensor of one value that lies as another."""
    memory_format = memory_format or torch.preserve_format
    return fill(torch.empty_like(like, dtype=dtype, device=device, memory_format=memory_format), value)
