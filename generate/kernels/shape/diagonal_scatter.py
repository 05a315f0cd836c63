"""aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor"""

from blocks.complex_numbers import convert_into
from blocks.copies import same_strides

OVERLOADS = ("aten::diagonal_scatter",)
DTYPES = (
    "bfloat16", "bool", "complex64", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
)  # fmt: skip


def wrapper(self, src, offset=0, dim1=0, dim2=1):
    out = same_strides(self)
    diagonal = out.diagonal(offset, dim1, dim2)
    if diagonal.shape != src.shape:
        raise RuntimeError(f"expected a source {tuple(diagonal.shape)}, got {tuple(src.shape)}")
    convert_into(out, self)
    convert_into(diagonal, src)
    return out
