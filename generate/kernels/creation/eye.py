"""aten::eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) ->
    Tensor
aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
    pin_memory=None) -> Tensor

Fills the result with zeros, and then the diagonal with ones.
"""

import torch
from blocks.creation import fill, new_full

OVERLOADS = ("aten::eye", "aten::eye.m")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(n, m=None, *, dtype=None, layout=None, device=None, pin_memory=None):
    out = new_full((n, n if m is None else m), 0, dtype or torch.get_default_dtype(), device)
    fill(out.diagonal(0, 0, 1), 1)
    return out
