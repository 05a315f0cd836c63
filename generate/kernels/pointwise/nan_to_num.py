"""aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor

By default, NaN becomes 0, and infinities become the dtype's largest and smallest finite numbers.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise

OVERLOADS = ("aten::nan_to_num",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def nan_to_num(x, nan, posinf, neginf):
    x = tl.where(x != x, nan, x)
    x = tl.where(x == float("inf"), posinf, x)
    return tl.where(x == float("-inf"), neginf, x)


def wrapper(self, nan=None, posinf=None, neginf=None, *, out=None):
    if not self.is_floating_point():
        return elementwise(identity, self, out=out)
    limits = torch.finfo(self.dtype)
    posinf = limits.max if posinf is None else posinf
    neginf = limits.min if neginf is None else neginf
    return elementwise(nan_to_num, self, numbers=(nan or 0.0, posinf, neginf), out=out)
