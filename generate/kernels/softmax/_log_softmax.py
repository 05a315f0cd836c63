"""aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor

Computes x - max - log(sum of exponentials), with blocks/rows.py.
"""

import torch
import triton
import triton.language as tl
from blocks.rows import map_rows

OVERLOADS = ("aten::_log_softmax",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def log_softmax(x, peak, total):
    return x - peak - tl.log(total)


def wrapper(self, dim, half_to_float):
    return map_rows(log_softmax, [self], dim, kind="softmax", dtype=torch.float32 if half_to_float else self.dtype)
