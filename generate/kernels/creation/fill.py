"""aten::fill.Scalar(Tensor self, Scalar value) -> Tensor
aten::fill.Tensor(Tensor self, Tensor value) -> Tensor

One flat grid over the output. The value is a Python number or a 0-dim tensor, which the kernel loads.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::fill.Scalar", "aten::fill.Tensor")
DTYPES = ("bfloat16", "bool", "float16", "float32", "int16", "int32", "int64", "int8", "uint8")


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
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_fill(out_ptr, value, n, shape, stride, IS_TENSOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if IS_TENSOR:
        value = tl.load(value)
    x = convert(tl.zeros([BLOCK], tl.int1) + value, out_ptr.dtype.element_ty)
    tl.store(out_ptr + strided(i, shape, stride), x, mask=i < n)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, value, *, out=None):
    if out is None:
        out = torch.empty_like(self)
    n = out.numel()
    shape, (stride,) = walk(out)
    kernel_fill[(triton.cdiv(n, 4096),)](
        out, value, n, shape, stride, IS_TENSOR=isinstance(value, torch.Tensor), BLOCK=4096, num_warps=8
    )
    return out
