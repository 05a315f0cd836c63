"""Values that are combined where indices along a dimension send them: sum, prod, mean, amax, amin, by atomics.

Products and extremes of floats are found as integers: a product holds the float's bits, and an extreme the integer that
is ordered as the floats are, in which NaN comes last.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.indexing import apply_along


@triton.jit
def float_bits(x):
    return x.to(tl.int64 if x.dtype.is_fp64() else tl.int32, bitcast=True)


@triton.jit
def bits_float(bits):
    return bits.to(tl.float64 if bits.dtype.primitive_bitwidth == 64 else tl.float32, bitcast=True)


@triton.jit
def rising(x):
    """An integer that is ordered as floats are, of NaN the largest."""
    bits = float_bits(x)
    MOST: tl.constexpr = 0x7FFFFFFFFFFFFFFF if x.dtype.is_fp64() else 0x7FFFFFFF
    return tl.where(x != x, MOST, tl.where(bits < 0, bits ^ MOST, bits))


@triton.jit
def falling(x):
    """The same, of NaN the smallest."""
    bits = float_bits(x)
    MOST: tl.constexpr = 0x7FFFFFFFFFFFFFFF if x.dtype.is_fp64() else 0x7FFFFFFF
    return tl.where(x != x, -MOST - 1, tl.where(bits < 0, bits ^ MOST, bits))


@triton.jit
def ordered_float(key):
    MOST: tl.constexpr = 0x7FFFFFFFFFFFFFFF if key.dtype.primitive_bitwidth == 64 else 0x7FFFFFFF
    return bits_float(tl.where(key < 0, key ^ MOST, key))


@triton.jit
def if_counted(total, x, count):
    return tl.where(count > 0, total, x)


@triton.jit
def mean_with_own(total, x, count):
    return average(total, count + 1)


@triton.jit
def mean_of_others(total, x, count):
    return tl.where(count > 0, average(total, tl.where(count > 0, count, 1)), x)


@triton.jit
def average(total, count):
    """total / count; of integers the next lower one."""
    if total.dtype.is_floating():
        quotient = total / count
    else:
        quotient = total // count
        quotient = tl.where(quotient * count > total, quotient - 1, quotient)
    return quotient


def reduce_along(self, dim, index, source, kind, include_self, out=None):
    """self, where nothing is sent, and else what self, if it is included, and the values sent there come to."""
    floats, device = self.dtype.is_floating_point, self.device
    wide = self.dtype in (torch.float64, torch.int64)
    whole = torch.int64 if wide else torch.int32
    common = (torch.float64 if wide else torch.float32) if floats else whole
    if kind in ("sum", "mean"):
        mode, encode, decode, held, nothing = "add", identity, None, common, 0
    elif kind == "prod":
        mode, encode, decode, held = "multiply", float_bits, bits_float, whole
        nothing = {torch.float32: 0x3F800000, torch.float64: 0x3FF0000000000000}.get(common, 1)
    elif kind in ("amax", "amin"):
        mode, encode, decode, held = kind[1:], rising if kind == "amax" else falling, ordered_float, whole
        nothing = torch.iinfo(whole).min if kind == "amax" else torch.iinfo(whole).max
    else:
        raise RuntimeError(f"reduce {kind}; choose from sum, prod, mean, amax, amin")
    encode, decode = (encode, decode) if floats else (identity, None)
    found = torch.empty(self.shape, dtype=held, device=device)
    if include_self:
        elementwise(encode, self, common=common, out=found)
    else:
        elementwise(identity, nothing, common=held, out=found)
    sent = source
    if encode is not identity:
        sent = elementwise(encode, source, common=common, dtype=held)
    apply_along(mode, found, dim, index, sent, common)
    out = torch.empty(self.shape, dtype=self.dtype, device=device) if out is None else out
    if decode is not None:
        found = elementwise(decode, found, common=held, dtype=common)
    if include_self and kind != "mean":
        return elementwise(identity, found, common=common, out=out)
    counts = torch.empty(self.shape, dtype=torch.int32, device=device)
    one = torch.empty((), dtype=torch.int32, device=device)
    elementwise(identity, 0, common=torch.int32, out=counts)
    elementwise(identity, 1, common=torch.int32, out=one)
    apply_along("add", counts, dim, index, one)
    finish = if_counted if kind != "mean" else mean_with_own if include_self else mean_of_others
    return elementwise(finish, found, self, counts, common=common, out=out)
