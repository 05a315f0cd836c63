"""aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor
aten::randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device?
    device=None, bool? pin_memory=None) -> Tensor
"""

import torch
from blocks.random import draw_normal

OVERLOADS = ("aten::randn", "aten::randn.generator")
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(size, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None, philox):
    return draw_normal(torch.empty(size, dtype=dtype, device=device), 0.0, 1.0, philox)
