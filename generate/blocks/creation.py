"""Tensors filled with one value or with the elements of another tensor."""

import torch
from blocks.arithmetic import identity
from blocks.elementwise import elementwise


def as_bits(*tensors):
    """Tensors of fp16 or bf16, if all are of one of these, as integers: what is moved and not computed on keeps its
    bits, those of NaN too. Others as they are."""
    dtypes = {t.dtype for t in tensors}
    halves = len(dtypes) == 1 and dtypes <= {torch.float16, torch.bfloat16}
    return [t.view(torch.int16) for t in tensors] if halves else list(tensors)


def fill(out, value):
    """`out`, filled with a number or with the elements of a tensor, which is broadcast, in its type.

    Floats are bytes by way of int64, as in ATen: -1 is 255 on every device.
    """
    if isinstance(value, torch.Tensor):
        value, held = as_bits(value, out)
        common = torch.int64 if value.is_floating_point() and out.dtype == torch.uint8 else held.dtype
        elementwise(identity, value, common=common, out=held)
        return out
    return elementwise(identity, value, common=out.dtype, out=out)


def new_full(size, value, dtype, device):
    return fill(torch.empty(size, dtype=dtype, device=device), value)


def full_as(like, value, dtype, device, memory_format):
    """A new tensor of one value that lies as another."""
    memory_format = memory_format or torch.preserve_format
    return fill(torch.empty_like(like, dtype=dtype, device=device, memory_format=memory_format), value)
