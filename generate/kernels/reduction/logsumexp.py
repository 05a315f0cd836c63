"""aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor

The largest element is subtracted before the exponentials are summed, and added to the logarithm
(arXiv:1805.02867).
"""

import triton
import triton.language as tl
from blocks.reduction import exponential_share, reduce
from blocks.types import float_dtype

OVERLOADS = ("aten::logsumexp",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def log_of_sum(peak, total, n):
    return peak + tl.log(total)


def wrapper(self, dim, keepdim=False):
    options = {"map": exponential_share, "finish": log_of_sum, "dtype": float_dtype(self.dtype)}
    return reduce("softmax", [self], dim, keepdim, **options)
