"""aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) ->
    Tensor

The result has the strides of self.
"""

from blocks.copies import same_strides
from blocks.regions import slice_bounds, sliced

OVERLOADS = ("aten::slice_scatter",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, src, dim=0, start=None, end=None, step=1):
    d = dim % self.dim()
    length = slice_bounds(self.shape[d], start, end, step)[1]
    if src.shape != (*self.shape[:d], length, *self.shape[d + 1 :]):
        raise RuntimeError(
            f"source {tuple(src.shape)} does not fit {length} slices along dimension {d} in {tuple(self.shape)}"
        )
    return sliced(src, same_strides(self), d, start, end, step, self)
