"""aten::nextafter(Tensor self, Tensor other) -> Tensor

The neighbor's bits differ by one. bf16 is computed in fp32, whose upper half holds the bf16 bits, so the step
is 2^16. fp16 operands are converted back to fp16 first.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import with_sign
from blocks.types import common_dtype

OVERLOADS = ("aten::nextafter",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def nextafter(x, y, step):
    bits = x.to(tl.int64 if x.dtype.is_fp64() else tl.int16 if x.dtype.is_fp16() else tl.int32, bitcast=True)
    grows = (y > x) == (x > 0)
    neighbor = tl.where(x == 0, tl.zeros_like(bits) + step, tl.where(grows, bits + step, bits - step)).to(bits.dtype)
    neighbor = neighbor.to(x.dtype, bitcast=True)
    neighbor = tl.where(x == 0, with_sign(neighbor, y), neighbor)
    return tl.where((x != x) | (y != y), float("nan"), tl.where(x == y, y, neighbor))


@triton.jit
def nextafter_of(x, y):
    return nextafter(x, y, 1)


@triton.jit
def nextafter_of_bfloat16(x, y):
    return nextafter(x, y, 65536)


@triton.jit
def nextafter_of_float16(x, y):
    return nextafter(x.to(tl.float16), y.to(tl.float16), 1)


def wrapper(self, other, *, out=None):
    common = common_dtype(self, other)
    if not common.is_floating_point:
        raise NotImplementedError(f"nextafter does not support {self.dtype} and {other.dtype}")
    narrow = {torch.bfloat16: nextafter_of_bfloat16, torch.float16: nextafter_of_float16}
    function = narrow.get(common, nextafter_of)
    return elementwise(function, self, other, out=out)
