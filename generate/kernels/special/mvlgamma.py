"""aten::mvlgamma(Tensor self, int p) -> Tensor

Adds p * (p - 1) / 4 * log(pi) and log |Gamma| at x, x - 1/2, ..., x - (p - 1) / 2, in fp64.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.gamma import log_gamma
from blocks.types import float_dtype

OVERLOADS = ("aten::mvlgamma",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def multivariate_log_gamma(x, p):
    total = tl.zeros_like(x) + p * (p - 1) * 0.2861824714623501
    for k in range(p.to(tl.int32)):
        total += log_gamma(x - 0.5 * k)
    return total


def wrapper(self, p):
    if self.dtype == torch.bool or p < 1:
        raise RuntimeError(f"mvlgamma needs a numeric dtype and p >= 1, got {self.dtype} and {p}")
    out = torch.empty(self.shape, dtype=float_dtype(self.dtype), device=self.device)
    return elementwise(multivariate_log_gamma, self, numbers=(p,), common=torch.float64, out=out)
