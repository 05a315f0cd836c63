"""Reductions along an index: sum, prod, mean, amax and amin, computed with atomics.

Used by the scatter_reduce and index_reduce kernels. Products and extremes run as integer atomics, floats
included: a product holds the float's bit pattern, and an extreme holds an integer key that sorts like the
float. NaN comes last in that order, so it propagates.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.indexing_along import apply_along


@triton.jit
def float_bits(x):
    """Return the bit pattern as int32, or as int64 for fp64."""
    return x.to(tl.int64 if x.dtype.is_fp64() else tl.int32, bitcast=True)


@triton.jit
def bits_float(bits):
    """Return the float with this bit pattern: fp64 for a 64-bit integer, else fp32."""
    return bits.to(tl.float64 if bits.dtype.primitive_bitwidth == 64 else tl.float32, bitcast=True)


@triton.jit
def rising(x):
    """Return an integer key that sorts like the float, with NaN as the largest key (for amax)."""
    bits = float_bits(x)
    # As integers, negative floats sort in reverse; flipping all bits but the sign restores their order.
    MOST: tl.constexpr = 0x7FFFFFFFFFFFFFFF if x.dtype.is_fp64() else 0x7FFFFFFF
    return tl.where(x != x, MOST, tl.where(bits < 0, bits ^ MOST, bits))


@triton.jit
def falling(x):
    """Return an integer key that sorts like the float, with NaN as the smallest key (for amin)."""
    bits = float_bits(x)
    MOST: tl.constexpr = 0x7FFFFFFFFFFFFFFF if x.dtype.is_fp64() else 0x7FFFFFFF
    return tl.where(x != x, -MOST - 1, tl.where(bits < 0, bits ^ MOST, bits))


@triton.jit
def ordered_float(key):
    """Return the float that belongs to a key from `rising` or `falling`."""
    MOST: tl.constexpr = 0x7FFFFFFFFFFFFFFF if key.dtype.primitive_bitwidth == 64 else 0x7FFFFFFF
    return bits_float(tl.where(key < 0, key ^ MOST, key))


@triton.jit
def if_counted(total, x, count):
    """Return the total if at least one value arrived, else x."""
    return tl.where(count > 0, total, x)


@triton.jit
def mean_with_own(total, x, count):
    """Return the mean over the values that arrived and self, which the total already contains."""
    return average(total, count + 1)


@triton.jit
def mean_of_others(total, x, count):
    """Return the mean over the values that arrived without self, or x if none arrived."""
    return tl.where(count > 0, average(total, tl.where(count > 0, count, 1)), x)


@triton.jit
def average(total, count):
    """Return total / count, rounded down (floor) for integers."""
    if total.dtype.is_floating():
        quotient = total / count
    else:
        quotient = total // count
        quotient = tl.where(quotient * count > total, quotient - 1, quotient)
    return quotient


def reduce_along(self, dim, index, source, kind, include_self, out=None):
    """Reduce the source values into self at the given indices along dim, as in `scatter_reduce`.

    An element that receives no value keeps its value from self. The accumulation type is fp32, fp64 for fp64,
    int32, or int64 for int64.

    Args:
        self: Tensor with the initial values.
        dim: Dimension along which `index` selects.
        index: Target positions along `dim`.
        source: Values to reduce.
        kind: "sum", "prod", "mean", "amax" or "amin".
        include_self: Let the value from self take part in the reduction if others arrive.
        out: Result tensor, or None for a new contiguous one with the shape and dtype of self.

    Returns:
        The result tensor.

    Raises:
        RuntimeError: If `kind` is none of these.
    """
    floats, device = self.dtype.is_floating_point, self.device
    wide = self.dtype in (torch.float64, torch.int64)
    bits = torch.int64 if wide else torch.int32
    common = (torch.float64 if wide else torch.float32) if floats else bits
    if kind in ("sum", "mean"):
        mode, encode, decode, storage, neutral_value = "add", identity, None, common, 0
    elif kind == "prod":
        mode, encode, decode, storage = "multiply", float_bits, bits_float, bits
        # the bits of 1.0, because the products are bit patterns
        neutral_value = {torch.float32: 0x3F800000, torch.float64: 0x3FF0000000000000}.get(common, 1)
    elif kind in ("amax", "amin"):
        mode, encode, decode, storage = kind[1:], rising if kind == "amax" else falling, ordered_float, bits
        neutral_value = torch.iinfo(bits).min if kind == "amax" else torch.iinfo(bits).max
    else:
        raise RuntimeError(f"reduce must be sum, prod, mean, amax or amin, got {kind}")
    encode, decode = (encode, decode) if floats else (identity, None)
    totals = torch.empty(self.shape, dtype=storage, device=device)
    if include_self:
        elementwise(encode, self, common=common, out=totals)
    else:
        elementwise(identity, neutral_value, common=storage, out=totals)
    updates = source
    if encode is not identity:
        updates = elementwise(encode, source, common=common, dtype=storage)
    apply_along(mode, totals, dim, index, updates, common)
    out = torch.empty(self.shape, dtype=self.dtype, device=device) if out is None else out
    if decode is not None:
        totals = elementwise(decode, totals, common=storage, dtype=common)
    if include_self and kind != "mean":
        return elementwise(identity, totals, common=common, out=out)
    # A count for each element, because a mean needs it, and an element without values must keep self.
    counts = torch.empty(self.shape, dtype=torch.int32, device=device)
    one = torch.empty((), dtype=torch.int32, device=device)
    elementwise(identity, 0, common=torch.int32, out=counts)
    elementwise(identity, 1, common=torch.int32, out=one)
    apply_along("add", counts, dim, index, one)
    finish = if_counted if kind != "mean" else mean_with_own if include_self else mean_of_others
    return elementwise(finish, totals, self, counts, common=common, out=out)
