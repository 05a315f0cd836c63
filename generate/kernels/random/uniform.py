"""aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor"""

import torch
from blocks.random import draw_uniform

OVERLOADS = ("aten::uniform",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, from_=0.0, to=1.0, *, generator=None, out=None, philox):
    if not from_ <= to:
        raise RuntimeError(f"expected from <= to, got {from_} and {to}")
    return draw_uniform(torch.empty_like(self) if out is None else out, from_, to, philox)
