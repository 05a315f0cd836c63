"""aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor

If the mask is false, 0 is added instead of the value.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.indexing import clamped_indices, put

OVERLOADS = ("aten::_unsafe_masked_index_put_accumulate",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def or_zero(x, mask):
    return tl.where(mask != 0, x, tl.zeros_like(x))


def wrapper(self, mask, indices, values):
    if self.dtype.itemsize > 1 and not self.dtype.is_signed:
        raise RuntimeError(f"masked indexing does not support {self.dtype}")
    indices = clamped_indices(self.shape, indices)
    return put(self, indices, elementwise(or_zero, values, mask, common=values.dtype), True)
