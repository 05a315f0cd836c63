"""aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]

Needs two launches for up to 64 tensors. blocks/norms.py defines the norm for each order.
"""

from blocks.lists import reduce_list
from blocks.norms import norm_of_order

OVERLOADS = ("aten::_foreach_norm.Scalar",)
DTYPES = ("bfloat16", "float16", "float32")


def wrapper(self, ord=2, dtype=None):
    if isinstance(ord, bool) or any([not x.is_floating_point() for x in self]):
        raise RuntimeError(
            f"expected a numeric order and floating-point tensors, got {ord} and {[x.dtype for x in self]}"
        )
    kind, map, finish, numbers, value = norm_of_order(ord)
    return reduce_list(kind, self, map=map, finish=finish, numbers=numbers, dtype=dtype, value=value)
