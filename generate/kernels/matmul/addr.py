"""aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

self is broadcast. It is ignored if beta is 0.
"""

import torch
import triton
from blocks.number_range import without_overflow
from blocks.offsets import empty_result
from blocks.tiles import in_tiles
from blocks.types import common_dtype

OVERLOADS = ("aten::addr",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def plus_outer(x, u, v, beta, alpha):
    return beta * x + alpha * u * v


@triton.jit
def outer_alone(x, u, v, alpha):
    return alpha * u * v


def wrapper(self, vec1, vec2, *, beta=1, alpha=1, out=None):
    function, numbers = (outer_alone, (alpha,)) if beta == 0 else (plus_outer, (beta, alpha))
    common = common_dtype(self, vec1, vec2)
    if not common.is_floating_point:
        without_overflow(common, beta, alpha)
    operands = torch.broadcast_tensors(self, vec1.unsqueeze(1), vec2)
    out = empty_result(operands, common) if out is None else out
    return in_tiles(function, *operands, *numbers, common=common, out=out)
