"""aten::mm(Tensor self, Tensor mat2) -> Tensor

One program a tile; transposed views are read where they lie.
"""

from blocks.complex_numbers import parts_of
from blocks.complex_systems import complex_of_products
from blocks.matmul import matmul

OVERLOADS = ("aten::mm",)
DTYPES = ("bfloat16", "complex64", "float16", "float32", "float64", "int32", "int64")


def wrapper(self, mat2):
    if self.is_complex():
        (a, b), (c, d) = parts_of(self), parts_of(mat2)
        return complex_of_products(matmul(a, c), matmul(b, d), matmul(a, d), matmul(b, c))
    return matmul(self, mat2)
