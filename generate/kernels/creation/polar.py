"""aten::polar(Tensor abs, Tensor angle) -> Tensor"""

import torch
import triton
import triton.language as tl
from blocks.complex_numbers import parts_of
from blocks.elementwise import elementwise
from blocks.offsets import empty_result

OVERLOADS = ("aten::polar",)
DTYPES = ("float32", "float64")


@triton.jit
def cartesian(size, angle):
    return size * tl.cos(angle), size * tl.sin(angle)


def wrapper(abs, angle):
    if abs.dtype != angle.dtype:
        raise RuntimeError(f"abs and angle must share one dtype, got {abs.dtype} and {angle.dtype}")
    out = empty_result(list(torch.broadcast_tensors(abs, angle)), abs.dtype.to_complex())
    elementwise(cartesian, abs, angle, out=parts_of(out))
    return out
