"""Sort keys: integers in the same order as the elements, with NaN last."""

import torch
import triton
import triton.language as tl
from blocks.offsets import strided

__all__ = ["keys_at", "order_key"]


@triton.jit
def order_key(x, DESCENDING: tl.constexpr):
    """Return an int32 or int64 key that sorts like the element: -0.0 equals 0.0, and NaN is largest.

    DESCENDING inverts the key.
    """
    if x.dtype.is_fp64():
        bits = x.to(tl.int64, bitcast=True)
        # negative numbers are sign and magnitude, so a larger magnitude must give a smaller integer
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
def keys_at(x_ptr, candidates, base, cols, mask, along, DESCENDING: tl.constexpr, PLAIN: tl.constexpr):
    """Load the keys at these columns in each row.

    If an earlier pass left keys in candidates[0], they are read from `base` on; otherwise the keys are made from x.
    """
    if len(candidates) > 0:
        key = tl.load(candidates[0] + base + cols, mask=mask, other=0)
    else:
        x = tl.load(x_ptr + strided(cols, along[0], along[1][0], False, PLAIN), mask=mask, other=0)
        key = order_key(x, DESCENDING)
    return key


def key_bits(dtype):
    """Return (lowest bit in which keys differ, bit count, True if the top bit is a sign) for this dtype.

    Half-precision values occupy the upper bits in single precision.
    """
    low = {torch.bfloat16: 16, torch.float16: 13}.get(dtype, 0)
    few = {torch.bool: 1, torch.uint8: 8, torch.int8: 8, torch.int16: 16, torch.int64: 64, torch.float64: 64}
    return low, few.get(dtype, 32), dtype not in (torch.bool, torch.uint8)
