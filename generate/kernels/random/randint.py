"""aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor
aten::randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=4, Layout?
    layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device?
    device=None, bool? pin_memory=None) -> Tensor
aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=4,
    Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
"""

import torch
from blocks.drawn_integers import draw_integers

OVERLOADS = ("aten::randint", "aten::randint.generator", "aten::randint.low", "aten::randint.low_generator")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(
    low, high, size=None, *, generator=None, dtype=torch.int64, layout=None, device=None, pin_memory=None, philox
):
    if size is None:
        low, high, size = 0, low, high
    return draw_integers(torch.empty(size, dtype=dtype, device=device), low, high, philox)
