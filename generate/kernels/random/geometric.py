"""aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor

Returns the number of trials up to the first success with probability p. It is log(u) / log(1 - p), rounded
up, for a uniform number u.
"""

import torch
import triton
import triton.language as tl
from blocks.drawn_numbers import positive_units64
from blocks.elementwise import elementwise
from blocks.functions import log1p_fp64

OVERLOADS = ("aten::geometric",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def trials(u, p):
    return tl.maximum(tl.ceil(tl.log(u) / log1p_fp64(-p)), 1.0)


def wrapper(self, p, *, generator=None, out=None, philox):
    if not 0 < p < 1:
        raise RuntimeError(f"p must be in (0, 1), got {p}")
    out = torch.empty_like(self) if out is None else out
    return elementwise(trials, p, source=(positive_units64, *philox), common=torch.float64, out=out)
