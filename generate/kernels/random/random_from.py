"""aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor

Returns integers in [from, to). By default, the last one is the largest integer up to which the dtype
represents all integers.
"""

import torch
from blocks.drawn_integers import draw_integers, last_integer

OVERLOADS = ("aten::random.from",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, from_, to, *, generator=None, out=None, philox):
    out = torch.empty_like(self) if out is None else out
    return draw_integers(out, from_, last_integer(out.dtype) + 1 if to is None else to, philox)
