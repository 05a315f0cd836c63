"""aten::polar(Tensor abs, Tensor angle) -> Tensor"""

import torch
import triton
from blocks.complex_numbers import parts_of
from blocks.elementwise import elementwise
from blocks.functions import sine_and_cosine
from blocks.offsets import empty_result

OVERLOADS = ("aten::polar",)
DTYPES = ("float32", "float64")


@triton.jit
def cartesian(size, angle):
    sine, cosine = sine_and_cosine(angle)
    return size * cosine, size * sine


def wrapper(abs, angle):
    if abs.dtype != angle.dtype:
        raise RuntimeError(f"polar of {abs.dtype} and {angle.dtype}")
    out = empty_result(list(torch.broadcast_tensors(abs, angle)), abs.dtype.to_complex())
    elementwise(cartesian, abs, angle, out=parts_of(out))
    return out
