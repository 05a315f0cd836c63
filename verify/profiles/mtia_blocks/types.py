"""Types of a device without float64."""

import math

import torch
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
        torch.bool: (tl.int1, tl.int32),
        torch.uint8: (tl.uint8, tl.int32),
        torch.int8: (tl.int8, tl.int32),
        torch.int16: (tl.int16, tl.int32),
        torch.int32: (tl.int32, tl.int32),
        torch.int64: (tl.int64, tl.int64),
    }[dtype]


def number_argument(value, dtype):
    """A Python number as the argument of a launch, to be read by our `number_value`: integers in disguise."""
    if dtype == torch.bool:
        value = value != 0
    if dtype == torch.uint8:
        value = int(value) % 256
    if not dtype.is_floating_point:
        return int(value) ^ 0x555555555555555B
    return float(value) if abs(value) < 3.4028235677973366e38 or value != value else math.copysign(math.inf, value)
