"""aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor

Returns the norm of the difference. blocks/norms.py defines the norm for each order.
"""

import math

import torch
import triton
from blocks.arithmetic import square
from blocks.norms import magnitude, nonzero, norm_of_order, power_of_magnitude
from blocks.reduction import reduce
from blocks.types import common_dtype

OVERLOADS = ("aten::dist",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def nonzero_difference(x, y):
    return nonzero(x - y)


@triton.jit
def magnitude_of_difference(x, y):
    return magnitude(x - y)


@triton.jit
def square_of_difference(x, y):
    return square(x - y)


@triton.jit
def power_of_difference(x, y, p):
    return power_of_magnitude(x - y, p)


def wrapper(self, other, p=2):
    dtype = common_dtype(self, other)
    if not dtype.is_floating_point:
        raise RuntimeError(f"norms do not support {dtype}")
    x, y = torch.broadcast_tensors(self, other)
    if x.numel() == 0 and (p < 0 or p == math.inf):
        raise RuntimeError(f"an empty tensor has no norm with order {p}")
    kind, _, finish, numbers, value = norm_of_order(p)
    ends = {0: nonzero_difference, 2: square_of_difference}
    if p in (1, math.inf, -math.inf):
        ends[p] = magnitude_of_difference
    value = torch.float64 if dtype == torch.float64 else value
    options = {"map": ends.get(p, power_of_difference), "finish": finish, "numbers": numbers, "values": (value,)}
    return reduce(kind, [x, y], None, dtype=dtype, **options)
