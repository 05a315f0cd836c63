"""aten::exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor

Computes -log(u) / lambd from a uniform number u. As in PyTorch, the result is never 0.
"""

import torch
import triton
import triton.language as tl
from blocks.drawn_numbers import draw_transformed

OVERLOADS = ("aten::exponential",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def waiting_time(u, rate):
    least = 5.5e-17 if u.dtype.is_fp64() else 2.9802322387695312e-08  # half the smallest value of 1 - u
    return tl.maximum(-tl.log(u), least) / rate


def wrapper(self, lambd=1.0, *, generator=None, out=None, philox):
    if lambd <= 0:
        raise RuntimeError(f"lambd must be positive, got {lambd}")
    return draw_transformed(waiting_time, (lambd,), torch.empty_like(self) if out is None else out, philox)
