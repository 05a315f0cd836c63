"""aten::relu(Tensor self) -> Tensor

NaN stays NaN.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::relu",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def relu(x):
    return tl.where(x < 0, tl.zeros_like(x), x)


def wrapper(self, *, out=None):
    if self.dtype == torch.bool:
        raise RuntimeError(f"relu does not support {self.dtype}")
    return elementwise(relu, self, out=out)
