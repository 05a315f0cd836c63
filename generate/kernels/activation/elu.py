"""aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import expm1

OVERLOADS = ("aten::elu",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def elu(x, alpha, scale, input_scale):
    return tl.where(x < 0, expm1(x * input_scale) * (alpha * scale), x * scale)


def wrapper(self, alpha=1, scale=1, input_scale=1, *, out=None):
    return elementwise(elu, self, numbers=(alpha, scale, input_scale), out=out)
