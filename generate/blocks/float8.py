"""Conversion between fp32 and 8-bit floats (float8_e4m3fn, e5m2, e4m3fnuz, e5m2fnuz), on their bits.

Values are rounded to nearest even, as in torch/headeronly/util/Float8_*.h of torch 2.13. Infinity and values
beyond the largest number become the largest number (e4m3fn; older versions make NaN), infinity (e5m2) or NaN
(the others). Triton's own conversion is not used, because it saturates e5m2, too, and compiles for few targets.
"""

import torch
import triton
import triton.language as tl
from blocks.tiles import copy_into, in_tiles

__all__ = ["copy_float8", "is_float8"]


@triton.jit
def encode_float8(x, MANTISSA: tl.constexpr, BIAS: tl.constexpr, FNUZ: tl.constexpr):
    """Return fp32 values as the bits of 8-bit floats with MANTISSA bits.

    FNUZ formats have no infinity and no -0, whose bits mean NaN.
    """
    bits = x.to(tl.int32, bitcast=True)
    sign, bits = (bits >> 24) & 128, bits & 2147483647
    CUT: tl.constexpr = 23 - MANTISSA
    # Adding half a unit less one, and one more if the last kept bit is odd, rounds to nearest even.
    normal = (bits + ((bits >> CUT) & 1) + ((1 << (CUT - 1)) - 1) - ((127 - BIAS) << 23)) >> CUT
    MAGIC: tl.constexpr = (151 - BIAS - MANTISSA) << 23  # adding it rounds to a multiple of the smallest 8-bit denormal
    magic = tl.full(x.shape, MAGIC, tl.int32)
    sum_of_both = bits.to(tl.float32, bitcast=True) + magic.to(tl.float32, bitcast=True)
    tiny = sum_of_both.to(tl.int32, bitcast=True) - magic
    code = tl.where(bits < ((128 - BIAS) << 23), tiny, normal)
    if FNUZ:
        code = tl.where(code == 0, 0, code | sign)
        # 135 and 143 are the biased exponents of 2^8 and 2^16, the first powers of 2 beyond the range.
        code = tl.where(bits >= (135 << 23 if MANTISSA == 3 else 143 << 23), 128, code)
    elif MANTISSA == 3:
        # 1087 << 20 has the exponent 135 and the mantissa 1.875: 480, above the largest number 448, whose bits are 126.
        code = tl.where(bits >= (1087 << 20), 126, tl.minimum(code, 126))
        code = tl.where(bits > (255 << 23), 127, code) | sign
    else:
        code = tl.where(bits >= (143 << 23), tl.where(bits > (255 << 23), 127, 124), code) | sign
    return code


@triton.jit
def decode_float8(code, MANTISSA: tl.constexpr, BIAS: tl.constexpr, FNUZ: tl.constexpr):
    """Return the fp32 values of 8-bit floats with these bits."""
    code = code.to(tl.int32)
    size = code & 127
    bits = (size << (23 - MANTISSA)) + ((127 - BIAS) << 23)
    SMALLEST: tl.constexpr = 2.0 ** (1 - BIAS - MANTISSA)
    x = tl.where(size < (1 << MANTISSA), size.to(tl.float32) * SMALLEST, bits.to(tl.float32, bitcast=True))
    if FNUZ:
        x = tl.where(code == 128, float("nan"), x)
    elif MANTISSA == 3:
        x = tl.where(size == 127, float("nan"), x)
    else:
        x = tl.where(size == 124, float("inf"), tl.where(size > 124, float("nan"), x))
    return tl.where(code >= 128, x * -1.0, x)


@triton.jit
def to_e4m3fn(x):
    """Encode fp32 values as e4m3fn bits."""
    return encode_float8(x, 3, 7, False)


@triton.jit
def to_e5m2(x):
    """Encode fp32 values as e5m2 bits."""
    return encode_float8(x, 2, 15, False)


@triton.jit
def to_e4m3fnuz(x):
    """Encode fp32 values as e4m3fnuz bits."""
    return encode_float8(x, 3, 8, True)


@triton.jit
def to_e5m2fnuz(x):
    """Encode fp32 values as e5m2fnuz bits."""
    return encode_float8(x, 2, 16, True)


@triton.jit
def of_e4m3fn(x):
    """Decode e4m3fn bits to fp32."""
    return decode_float8(x, 3, 7, False)


@triton.jit
def of_e5m2(x):
    """Decode e5m2 bits to fp32."""
    return decode_float8(x, 2, 15, False)


@triton.jit
def of_e4m3fnuz(x):
    """Decode e4m3fnuz bits to fp32."""
    return decode_float8(x, 3, 8, True)


@triton.jit
def of_e5m2fnuz(x):
    """Decode e5m2fnuz bits to fp32."""
    return decode_float8(x, 2, 16, True)


def is_float8(x):
    """Return True for an 8-bit float dtype."""
    return x.dtype.itemsize == 1 and x.dtype.is_floating_point


def float8_functions(dtype):
    """Return the encoder and the decoder for this dtype; raise NotImplementedError for any other dtype."""
    if dtype == torch.float8_e4m3fn:
        return to_e4m3fn, of_e4m3fn
    if dtype == torch.float8_e5m2:
        return to_e5m2, of_e5m2
    if dtype == torch.float8_e4m3fnuz:
        return to_e4m3fnuz, of_e4m3fnuz
    if dtype == torch.float8_e5m2fnuz:
        return to_e5m2fnuz, of_e5m2fnuz
    raise NotImplementedError(f"float8 functions do not support {dtype}")


def copy_float8(out, value):
    """Fill `out` with a broadcast tensor and return it; at least one side is an 8-bit float.

    Raises NotImplementedError if the other side is not floating, or is a different 8-bit float.
    """
    if out.dtype == value.dtype:
        copy_into(out.view(torch.uint8), value.view(torch.uint8))
        return out
    if not (out.is_floating_point() and value.is_floating_point()) or (is_float8(out) and is_float8(value)):
        raise NotImplementedError(f"cannot convert {value.dtype} to {out.dtype}")
    if is_float8(out):
        in_tiles(float8_functions(out.dtype)[0], value, common=torch.float32, out=out.view(torch.uint8))
    else:
        in_tiles(float8_functions(value.dtype)[1], value.view(torch.uint8), common=torch.uint8, out=out)
    return out
