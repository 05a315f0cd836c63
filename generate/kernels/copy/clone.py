"""aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor

For a sparse tensor, the kernel copies the indices and values. The conjugate and negative bits are resolved.
"""

import torch
from blocks.complex_numbers import as_reals
from blocks.float8 import copy_float8, is_float8
from blocks.lazy_bits import has_bits, resolve_into
from blocks.tiles import copy_into

OVERLOADS = ("aten::clone",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex32", "complex64", "float16", "float32", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip
LAYOUTS = ("sparse_coo", "strided")


def wrapper(self, *, memory_format=None):
    if self.is_sparse:
        parts = wrapper(self._indices()), wrapper(self._values())
        return torch.sparse_coo_tensor(*parts, self.shape, is_coalesced=self.is_coalesced(), check_invariants=False)
    out = torch.empty_like(self, memory_format=memory_format or torch.preserve_format)
    if has_bits(self):
        return resolve_into(out, self)
    if is_float8(self):
        return copy_float8(out, self)
    copy_into(as_reals(out), as_reals(self))
    return out
