"""aten::reciprocal(Tensor self) -> Tensor

One flat grid over the output, computed in fp32, of float64 in fp64; integers give the default floating-point type.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::reciprocal",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


@triton.jit
def kernel_reciprocal(x_ptr, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask)
    x = x if x.dtype == tl.float64 else x.to(tl.float32)
    out = 1 / x if x.dtype == tl.float64 else tl.div_rn(tl.full(x.shape, 1.0, tl.float32), x)
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(out_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, *, out=None):
    if out is None:
        out = torch.empty_like(self, dtype=torch.result_type(self, 1.0))
    n = out.numel()
    shape, (x_stride, out_stride) = walk(self, out)
    kernel_reciprocal[(triton.cdiv(n, 4096),)](self, out, n, shape, x_stride, out_stride, BLOCK=4096, num_warps=8)
    return out
