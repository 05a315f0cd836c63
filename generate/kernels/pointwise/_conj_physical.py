"""aten::_conj_physical(Tensor self) -> Tensor

Resolves the conjugate view self.conj(). If self has the conjugate bit, that view has none.
"""

import torch
from blocks.lazy_bits import resolve_into

OVERLOADS = ("aten::_conj_physical",)
DTYPES = ("complex128", "complex64")


def wrapper(self):
    return resolve_into(torch.empty_like(self), self.conj())
