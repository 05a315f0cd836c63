"""aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"""

from blocks.copies import same_strides
from blocks.regions import selected

OVERLOADS = ("aten::select_scatter",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, src, dim, index):
    d = dim % max(self.dim(), 1)
    if src.shape != (*self.shape[:d], *self.shape[d + 1 :]):
        raise RuntimeError(f"source {tuple(src.shape)} does not fit {tuple(self.shape)} without dimension {d}")
    return selected(src, same_strides(self), d, index, self)
