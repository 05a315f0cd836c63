"""aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"""

from blocks.search import search_sorted

OVERLOADS = ("aten::bucketize.Tensor",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, boundaries, *, out_int32=False, right=False):
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries must have one dimension, got {boundaries.dim()}")
    return search_sorted(boundaries, self, out_int32, right)
