"""aten::log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor

Returns the exponential of a normal number with this mean and standard deviation.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.random import normals32, normals64

OVERLOADS = ("aten::log_normal",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def exponential_of_normal(z, mean, std):
    return tl.exp(mean + std * z)


def wrapper(self, mean=1.0, std=2.0, *, generator=None, out=None, philox):
    if std <= 0:
        raise RuntimeError(f"std must be positive, got {std}")
    out = torch.empty_like(self) if out is None else out
    source = normals64 if out.dtype == torch.float64 else normals32
    return elementwise(exponential_of_normal, mean, std, source=(source, *philox), common=out.dtype, out=out)
