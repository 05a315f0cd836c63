"""aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor
aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor
aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor
aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None,
    Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
"""

import torch
from blocks.random import draw_normal

OVERLOADS = (
    "aten::normal.Tensor_Tensor",
    "aten::normal.Tensor_float",
    "aten::normal.float_Tensor",
    "aten::normal.float_float",
)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(mean, std=1.0, size=None, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None, philox):
    tensors = [x for x in (mean, std) if isinstance(x, torch.Tensor)]
    if tensors:
        size, dtype, device = torch.broadcast_shapes(*[t.shape for t in tensors]), tensors[0].dtype, tensors[0].device
    return draw_normal(torch.empty(size, dtype=dtype, device=device), mean, std, philox)
