"""aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
aten::rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device?
    device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
"""

import torch
from blocks.random import draw_uniform

OVERLOADS = ("aten::rand_like", "aten::rand_like.generator")
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None, philox):
    memory_format = memory_format or torch.preserve_format
    out = torch.empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return draw_uniform(out, 0.0, 1.0, philox)
