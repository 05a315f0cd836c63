"""aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor"""

import torch
from blocks.random import draw_normal

OVERLOADS = ("aten::normal_functional",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, mean=0.0, std=1.0, *, generator=None, out=None, philox):
    return draw_normal(torch.empty_like(self) if out is None else out, mean, std, philox)
