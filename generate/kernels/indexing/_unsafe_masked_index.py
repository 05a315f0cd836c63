"""aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.indexing import clamped_indices, gather

OVERLOADS = ("aten::_unsafe_masked_index",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def or_fill(x, mask, fill):
    return tl.where(mask != 0, x, fill)


def wrapper(self, mask, indices, fill):
    if self.dtype.itemsize > 1 and not self.dtype.is_signed:
        raise RuntimeError(f"masked indexing does not support {self.dtype}")
    out = gather(self, clamped_indices(self.shape, indices))
    if not self.numel():
        return elementwise(identity, fill, common=out.dtype, out=out)
    fits = torch.broadcast_shapes(out.shape, mask.shape) == out.shape
    return elementwise(or_fill, out, mask, numbers=(fill,), common=self.dtype, out=out if fits else None)
