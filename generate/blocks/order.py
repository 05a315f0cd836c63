"""Order: integers that compare as elements do, NaN behind all numbers."""

import torch
import triton
import triton.language as tl
from blocks.offsets import strided

__all__ = ["keys_at", "order_key"]


@triton.jit
def order_key(x, DESCENDING: tl.constexpr):
    """An integer of 32 or 64 bits, in the order of the elements: equal for both zeros; the largest for NaN."""
    if x.dtype.is_fp64():
        bits = x.to(tl.int64, bitcast=True)
        key = tl.where(x == 0, 0, bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF))
        key = tl.where(x != x, 0x7FFFFFFFFFFFFFFF, key)
    elif x.dtype.is_floating():
        x = x.to(tl.float32)
        bits = x.to(tl.int32, bitcast=True)
        key = tl.where(x == 0, 0, bits ^ ((bits >> 31) & 0x7FFFFFFF))
        key = tl.where(x != x, 0x7FFFFFFF, key)
    else:
        key = x if x.dtype.primitive_bitwidth == 64 else x.to(tl.int32)
    return ~key if DESCENDING else key


@triton.jit
def keys_at(x_ptr, held, base, cols, mask, along, DESCENDING: tl.constexpr, PLAIN: tl.constexpr):
    """The keys of elements of rows, of which held[0] has those kept before, if there are any, from `base` on."""
    if len(held) > 0:
        key = tl.load(held[0] + base + cols, mask=mask, other=0)
    else:
        x = tl.load(x_ptr + strided(cols, along[0], along[1][0], False, PLAIN), mask=mask, other=0)
        key = order_key(x, DESCENDING)
    return key


def key_bits(dtype):
    """From which bit on keys of this dtype differ, the number of their bits, and whether the last is a sign's.

    Half precision has its digits in the upper bits of single precision.
    """
    low = {torch.bfloat16: 16, torch.float16: 13}.get(dtype, 0)
    few = {torch.bool: 1, torch.uint8: 8, torch.int8: 8, torch.int16: 16, torch.int64: 64, torch.float64: 64}
    return low, few.get(dtype, 32), dtype not in (torch.bool, torch.uint8)
