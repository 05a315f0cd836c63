"""aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor

self where it is > threshold or NaN, else value, over one flat grid. Both numbers come in fp64 and are rounded to the
tensor's type, as in ATen.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::threshold",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


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
def kernel_threshold(
    x_ptr, out_ptr, threshold: tl.float64, value: tl.float64, n, shape, x_stride, out_stride, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask)
    out = tl.where(x <= tl.full([], threshold, x.dtype), tl.full([], value, x.dtype), x)
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(out_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie alike and without gaps."""
    first = tensors[0]
    if all(t.is_contiguous() for t in tensors):
        return (first.numel(),), [(1,)] * len(tensors)
    shape, strides = tuple(first.shape), [t.stride() for t in tensors]
    dense = 1 + sum((n - 1) * s for n, s in zip(shape, strides[0], strict=True)) == first.numel()
    if dense and all(s == strides[0] for s in strides):
        return (first.numel(),), [(1,)] * len(tensors)
    return shape, strides


def wrapper(self, threshold, value, *, out=None):
    if out is None:
        out = torch.empty_like(self)
    n = out.numel()
    shape, (x_stride, out_stride) = walk(self, out)
    kernel_threshold[(triton.cdiv(n, 4096),)](
        self, out, float(threshold), float(value), n, shape, x_stride, out_stride, BLOCK=4096, num_warps=8
    )
    return out
