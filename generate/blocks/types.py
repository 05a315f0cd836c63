"""Types: what operands are promoted to, and what is computed in."""

import math

import torch
import triton
import triton.language as tl


def compute_types(dtype):
    """The Triton types that operands of a common dtype are converted to, and then computed in (ATen's opmath).

    fp16 and bf16 are computed in fp32; integers of up to 32 bits and bools in int32, which wraps around as they do once
    it is stored.
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
    """The dtype to which PyTorch promotes tensors and Python numbers (torch.result_type of any number of them).

    Tensors with dimensions decide; those of none, and then numbers, only where they are of a higher category.
    """
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    dtypes = [t.dtype for t in tensors if t.dim()], [t.dtype for t in tensors if not t.dim()]
    found = None
    for own in (*dtypes, [_number_dtype(x) for x in operands if not isinstance(x, torch.Tensor)]):
        if own:
            dtype = own[0]
            for other in own[1:]:
                dtype = torch.promote_types(dtype, other)
            found = dtype if found is None or _category(dtype) > _category(found) else found
    return found


def float_dtype(dtype):
    """A floating-point dtype: this one, or the default one in the place of integers and bools."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.get_default_dtype()


def identical_dtypes(first, *others):
    """Raises RuntimeError where these tensors are not all of one dtype."""
    dtypes = [t.dtype for t in others]
    if any([dtype != first.dtype for dtype in dtypes]):
        raise RuntimeError(f"tensors of {[first.dtype, *dtypes]}")


def _number_dtype(x):
    if isinstance(x, bool):
        return torch.bool
    return torch.int64 if isinstance(x, int) else torch.get_default_dtype()


def _category(dtype):
    return 0 if dtype == torch.bool else 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1


def number_argument(value, dtype):
    """A Python number as the argument of a launch, to be read by `number_value` in the common type of this dtype.

    Triton passes floats as fp32: those of float64 go as the integer that their bits are. Integers go in disguise, since
    Triton compiles anew for those that are 1, a multiple of 16, or of no more than 32 bits.
    """
    if dtype == torch.bool:
        value = value != 0
    if dtype == torch.uint8:
        value = int(value) % 256
    if dtype == torch.float64:
        value = _float64_bits(float(value))
    if dtype == torch.float64 or not dtype.is_floating_point:
        return int(value) ^ 0x555555555555555B
    return float(value) if abs(value) < 3.4028235677973366e38 or value != value else math.copysign(math.inf, value)


def _float64_bits(value):
    """The bits of a Python float as a signed 64-bit integer (IEEE 754 binary64)."""
    if value != value:
        return 0x7FF8000000000000
    fraction, exponent = math.frexp(abs(value))  # in [0.5, 1)
    if value in (math.inf, -math.inf):
        bits = 0x7FF << 52
    elif value == 0 or exponent < -1021:  # subnormal
        bits = int(math.ldexp(fraction, exponent + 1074))
    else:
        bits = (exponent + 1021 << 52) + int(math.ldexp(fraction, 53))
    return bits - (1 << 63) if math.copysign(1.0, value) < 0 else bits


@triton.jit
def number_value(x, OPMATH: tl.constexpr):
    """What `number_argument` made of a number, in the type to compute in."""
    if OPMATH.is_fp32():
        return tl.cast(x, OPMATH)
    bits = tl.cast(x, tl.int64) ^ 0x555555555555555B
    return tl.cast(bits, OPMATH, bitcast=True) if OPMATH.is_fp64() else bits.to(OPMATH)


@triton.jit
def convert(x, DTYPE: tl.constexpr):
    """x in another type. fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(DTYPE) if DTYPE.is_fp16() or DTYPE.is_bf16() else x.to(DTYPE)


def rounded(value, dtype):
    """A Python number as a tensor of this dtype holds it."""
    if not dtype.is_floating_point or dtype == torch.float64 or not math.isfinite(value):
        return value
    digits, least = {torch.float16: (11, -24), torch.bfloat16: (8, -133), torch.float32: (24, -149)}[dtype]
    unit = max(math.frexp(value)[1] - digits, least)  # of the last digit; exponents of two
    return math.ldexp(round(math.ldexp(value, -unit)), unit)
