"""aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)
    -> Tensor

blocks/norms.py defines the norm for each order.
"""

from blocks.norms import norm_of_order
from blocks.reduction import reduce

OVERLOADS = ("aten::linalg_vector_norm",)
DTYPES = ("bfloat16", "float16", "float32")


def wrapper(self, ord=2, dim=None, keepdim=False, *, dtype=None):
    kind, map, finish, numbers, value = norm_of_order(ord)
    options = {"map": map, "finish": finish, "numbers": numbers, "values": (value,)}
    return reduce(kind, [self], dim, keepdim, dtype=dtype or self.dtype, **options)
