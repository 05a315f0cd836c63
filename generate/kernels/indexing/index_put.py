"""aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor

Boolean masks are converted to indices first. Accumulation uses atomics.
"""

from blocks.indexing import by_integers, put

OVERLOADS = ("aten::index_put", "aten::_index_put_impl")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, indices, values, accumulate=False, unsafe=False, *, out=None):
    if values.dtype != self.dtype or any(i is not None and i.is_floating_point() for i in indices):
        raise RuntimeError(
            f"cannot put {values.dtype} into {self.dtype} at {[None if i is None else i.dtype for i in indices]}"
        )
    return put(self, by_integers(self.shape, indices), values, accumulate, out=out)
