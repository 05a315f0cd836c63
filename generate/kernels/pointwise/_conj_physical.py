"""aten::_conj_physical(Tensor self) -> Tensor"""

import triton
from blocks.complex_numbers import complex_elementwise

OVERLOADS = ("aten::_conj_physical",)
DTYPES = ("complex128", "complex64")


@triton.jit
def conjugate(a, b):
    return a, b * -1.0


def wrapper(self):
    return complex_elementwise(conjugate, self, dtype=self.dtype)
