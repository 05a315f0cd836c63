"""aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor

Of a sparse tensor, its indices and values; where the conjugate bit is set, the conjugates.
"""

import torch
from blocks.complex_numbers import as_reals, conjugated
from blocks.tiles import copy_into

OVERLOADS = ("aten::clone",)
DTYPES = (
    "bfloat16", "bool", "complex128", "complex32", "complex64", "float16", "float32", "float64",
    "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip
LAYOUTS = ("sparse_coo", "strided")


def wrapper(self, *, memory_format=None):
    if self.is_sparse:
        parts = wrapper(self._indices()), wrapper(self._values())
        return torch.sparse_coo_tensor(*parts, self.shape, is_coalesced=self.is_coalesced(), check_invariants=False)
    out = torch.empty_like(self, memory_format=memory_format or torch.preserve_format)
    if self.is_conj():
        return conjugated(self.conj(), out)
    copy_into(as_reals(out), as_reals(self))
    return out
