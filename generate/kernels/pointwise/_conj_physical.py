"""aten::_conj_physical(Tensor self) -> Tensor"""

from blocks.complex_numbers import conjugated

OVERLOADS = ("aten::_conj_physical",)
DTYPES = ("complex128", "complex64")


def wrapper(self):
    return conjugated(self)
