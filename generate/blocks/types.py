"""Type promotion: the common dtype for operands, and the type that kernels compute in."""

import math

import torch
import triton
import triton.language as tl

# Magnitude from which on fp32 rounds to infinity: halfway from its largest number to 2^128.
FP32_OVERFLOW = 3.4028235677973366e38


def compute_types(dtype):
    """Return the Triton types (common type for conversion, ATen's opmath type for computing).

    fp16 and bf16 are computed in fp32. Integers up to 32 bits and bools are computed in int32, which wraps
    around as they do once it is stored.
    """
    return {
        torch.float16: (tl.float16, tl.float32),
        torch.bfloat16: (tl.bfloat16, tl.float32),
        torch.float32: (tl.float32, tl.float32),
        torch.float64: (tl.float64, tl.float64),
        torch.bool: (tl.int1, tl.int32),
        torch.uint8: (tl.uint8, tl.int32),
        torch.int8: (tl.int8, tl.int32),
        torch.int16: (tl.int16, tl.int32),
        torch.int32: (tl.int32, tl.int32),
        torch.int64: (tl.int64, tl.int64),
    }[dtype]


def common_dtype(*operands):
    """Return the dtype to which PyTorch promotes tensors and Python numbers (torch.result_type for any count).

    Tensors with dimensions decide. Tensors without dimensions, and then numbers, count only if their category
    is higher.
    """
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    dtypes = [t.dtype for t in tensors if t.dim()], [t.dtype for t in tensors if not t.dim()]
    result = None
    for group in (*dtypes, [_number_dtype(x) for x in operands if not isinstance(x, torch.Tensor)]):
        if group:
            dtype = group[0]
            for other in group[1:]:
                dtype = torch.promote_types(dtype, other)
            result = dtype if result is None or _category(dtype) > _category(result) else result
    return result


def float_dtype(dtype):
    """Return a floating-point dtype: this one, or the default dtype for integers and bools."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def identical_dtypes(first, *rest):
    """Raise RuntimeError unless all tensors have one dtype."""
    dtypes = [t.dtype for t in rest]
    if any([dtype != first.dtype for dtype in dtypes]):
        raise RuntimeError(f"tensors must share one dtype, got {[first.dtype, *dtypes]}")


def _number_dtype(x):
    if isinstance(x, bool):
        return torch.bool
    return torch.int64 if isinstance(x, int) else torch.get_default_dtype()


def _category(dtype):
    return 0 if dtype == torch.bool else 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1


def number_argument(value, dtype):
    """Encode a Python number as a launch argument, to be decoded by `number_value` in this common dtype.

    Triton passes floats as fp32, so a float64 goes as the integer with its bits. Integers are XORed with a
    constant, because Triton compiles anew for those that are 1, divisible by 16, or within 32 bits.
    """
    if dtype == torch.bool:
        value = value != 0
    if dtype == torch.uint8:
        value = int(value) % 256
    if dtype == torch.float64:
        value = _float64_bits(float(value))
    if dtype == torch.float64 or not dtype.is_floating_point:
        return int(value) ^ 0x555555555555555B
    return float(value) if abs(value) < FP32_OVERFLOW or value != value else math.copysign(math.inf, value)


def _float64_bits(value):
    """Return a Python float's bits as a signed 64-bit integer (IEEE 754 binary64)."""
    if value != value:
        return 0x7FF8000000000000
    fraction, exponent = math.frexp(abs(value))  # fraction in [0.5, 1), so IEEE's exponent is one less
    if value in (math.inf, -math.inf):
        bits = 0x7FF << 52
    elif value == 0 or exponent < -1021:  # subnormal
        bits = int(math.ldexp(fraction, exponent + 1074))
    else:
        bits = (exponent + 1021 << 52) + int(math.ldexp(fraction, 53))
    return bits - (1 << 63) if math.copysign(1.0, value) < 0 else bits


@triton.jit
def number_value(x, OPMATH: tl.constexpr):
    """Decode a number from `number_argument` in the type to compute in."""
    if OPMATH.is_fp32():
        return tl.cast(x, OPMATH)
    bits = tl.cast(x, tl.int64) ^ 0x555555555555555B
    return tl.cast(bits, OPMATH, bitcast=True) if OPMATH.is_fp64() else bits.to(OPMATH)


@triton.jit
def convert(x, DTYPE: tl.constexpr):
    """Convert x to another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(DTYPE) if DTYPE.is_fp16() or DTYPE.is_bf16() else x.to(DTYPE)


def rounded(value, dtype):
    """Return a Python number rounded to this dtype."""
    if not dtype.is_floating_point or dtype == torch.float64 or not math.isfinite(value):
        return value
    digits, least = {torch.float16: (11, -24), torch.bfloat16: (8, -133), torch.float32: (24, -149)}[dtype]
    unit = max(math.frexp(value)[1] - digits, least)  # exponent, base 2, for the last digit
    return math.ldexp(round(math.ldexp(value, -unit)), unit)
