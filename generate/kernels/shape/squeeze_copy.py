"""aten::squeeze_copy(Tensor self) -> Tensor
aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor
aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor
"""

from blocks.copies import copied

OVERLOADS = ("aten::squeeze_copy", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, dim=None, *, out=None):
    dim = tuple(dim) if isinstance(dim, list) else dim
    return copied(self.squeeze() if dim is None else self.squeeze(dim), out)
