"""aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor

One flat grid over the output; NaN stays NaN, and max wins where min > max.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::clamp",)
DTYPES = ("bfloat16", "float16", "float32", "int16", "int32", "int64", "int8")


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
def widen(x):
    """The type to compute in: fp32 for floating point, int64 for integers and bools."""
    return x.to(tl.float32) if x.dtype.is_floating() else x.to(tl.int64)


@triton.jit
def kernel_clamp(x_ptr, out_ptr, n, low, high, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = widen(tl.load(x_ptr + strided(i, shape, x_stride), mask=mask))
    if low is not None:
        x = tl.where(x < low, low, x)
    if high is not None:
        x = tl.where(x > high, high, x)
    tl.store(out_ptr + strided(i, shape, out_stride), x.to(out_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, min=None, max=None, *, out=None):
    if out is None:
        bounds = [bound for bound in (min, max) if bound is not None]
        out = torch.empty_like(self, dtype=torch.result_type(self, sum(bounds)))
    n = out.numel()
    shape, (x_stride, out_stride) = walk(self, out)
    kernel_clamp[(triton.cdiv(n, 4096),)](self, out, n, min, max, shape, x_stride, out_stride, BLOCK=4096, num_warps=8)
    return out
