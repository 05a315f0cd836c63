"""aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor

Boolean masks are converted to indices first.
"""

from blocks.indexing import by_integers, gather

OVERLOADS = ("aten::_unsafe_index.Tensor",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, indices):
    return gather(self, by_integers(self.shape, indices))
