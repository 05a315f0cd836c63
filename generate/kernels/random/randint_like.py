"""aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
aten::randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? dtype=None, Layout?
    layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None,
    Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
aten::randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? generator, ScalarType?
    dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat?
    memory_format=None) -> Tensor
"""

import torch
from blocks.drawn_integers import draw_integers

OVERLOADS = (
    "aten::randint_like",
    "aten::randint_like.generator",
    "aten::randint_like.low_dtype",
    "aten::randint_like.low_generator_dtype",
)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(
    self,
    low,
    high=None,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=None,
    memory_format=None,
    philox,
):
    low, high = (0, low) if high is None else (low, high)
    memory_format = memory_format or torch.preserve_format
    out = torch.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return draw_integers(out, low, high, philox)
