"""aten::mm(Tensor self, Tensor mat2) -> Tensor

One program a tile; transposed views are read where they lie.
"""

from blocks.complex_systems import complex_matmul
from blocks.matmul import matmul

OVERLOADS = ("aten::mm",)
DTYPES = ("bfloat16", "complex64", "float16", "float32", "float64", "int32", "int64")


def wrapper(self, mat2):
    return complex_matmul(self, mat2, matmul) if self.is_complex() else matmul(self, mat2)
