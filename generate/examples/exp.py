"""aten::exp(Tensor self) -> Tensor

One flat grid over the output; every program decodes its flat indices into offsets of the input and of the output, so
any strides will do. fp16, bf16 and integers are computed in fp32; integers give the default floating-point dtype.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("bfloat16", "float16", "float32", "int32", "int64")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, -1, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    return offset


@triton.jit
def kernel_exp(x_ptr, o_ptr, n, shape, x_stride, o_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask).to(tl.float32)
    tl.store(o_ptr + strided(i, shape, o_stride), tl.exp(x).to(o_ptr.dtype.element_ty), mask=mask)


def wrapper(self, *, out=None):
    if out is None:
        dtype = self.dtype if self.dtype.is_floating_point else torch.get_default_dtype()
        out = torch.empty_like(self, dtype=dtype)
    n = out.numel()
    if n > 0:
        grid = (triton.cdiv(n, 1024),)
        kernel_exp[grid](self, out, n, tuple(self.shape), self.stride(), out.stride(), BLOCK=1024)
    return out
