"""aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor

Computes log(1 + e^(beta * x)) / beta. If beta * x > threshold, the result is x.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p

OVERLOADS = ("aten::softplus",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def softplus(x, beta, threshold):
    scaled = x * beta
    return tl.where(scaled > threshold, x, log1p(tl.exp(tl.where(scaled > threshold, 0.0, scaled))) / beta)


def wrapper(self, beta=1, threshold=20, *, out=None):
    return elementwise(softplus, self, numbers=(beta, threshold), out=out)
