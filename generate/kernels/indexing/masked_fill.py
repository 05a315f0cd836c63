"""aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor
aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.number_range import without_overflow

OVERLOADS = ("aten::masked_fill.Scalar", "aten::masked_fill.Tensor")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def filled(x, mask, value):
    return tl.where(mask != 0, value, x)


def wrapper(self, mask, value, *, out=None):
    if isinstance(value, torch.Tensor) and value.dim():
        raise RuntimeError(f"value must have no dimensions, got {value.dim()}")
    if mask.dtype != torch.bool:
        raise RuntimeError(f"mask must be bool, got {mask.dtype}")
    without_overflow(self.dtype, value)
    if out is None:
        shape = torch.broadcast_shapes(self.shape, mask.shape)
        out = torch.empty(shape, dtype=self.dtype, device=self.device)
    return elementwise(filled, self, mask, value, common=self.dtype, out=out)
