"""aten::_conj_physical(Tensor self) -> Tensor

Resolves a view that has the conjugate bit, or not where `self` has it.
"""

import torch
from blocks.lazy_bits import resolve_into

OVERLOADS = ("aten::_conj_physical",)
DTYPES = ("complex128", "complex64")


def wrapper(self):
    return resolve_into(torch.empty_like(self), self.conj())
