"""Type rules for a device without float64. They replace the library's block with the same name."""

import math

import torch
import triton.language as tl


def compute_types(dtype):
    """Return (operand type, compute type) in Triton for operands with a common dtype, like ATen's opmath.

    fp16 and bf16 are computed in fp32. Integers up to 32 bits and bools are computed in int32; the result wraps
    around when it is stored, just as in the narrower type.
    """
    return {
        torch.float16: (tl.float16, tl.float32),
        torch.bfloat16: (tl.bfloat16, tl.float32),
        torch.float32: (tl.float32, tl.float32),
        torch.bool: (tl.int1, tl.int32),
        torch.uint8: (tl.uint8, tl.int32),
        torch.int8: (tl.int8, tl.int32),
        torch.int16: (tl.int16, tl.int32),
        torch.int32: (tl.int32, tl.int32),
        torch.int64: (tl.int64, tl.int64),
    }[dtype]


def number_argument(value, dtype):
    """Encode a Python number as a launch argument, to be decoded by our `number_value` in this dtype.

    Integers are XORed with a constant, because Triton compiles anew for those that are 1, divisible by 16, or
    within 32 bits. Floats beyond the range of fp32 become infinite.
    """
    if dtype == torch.bool:
        value = value != 0
    if dtype == torch.uint8:
        value = int(value) % 256
    if not dtype.is_floating_point:
        return int(value) ^ 0x555555555555555B
    return float(value) if abs(value) < 3.4028235677973366e38 or value != value else math.copysign(math.inf, value)
