"""aten::cat(Tensor[] tensors, int dim=0) -> Tensor

Each tensor is copied by one flat grid into its slice of the output. Empty 1-D tensors are skipped, as in ATen; the
output is channels-last where all inputs are, else contiguous.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::cat",)
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
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_cat(x_ptr, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask)
    tl.store(out_ptr + strided(i, shape, out_stride), convert(x, out_ptr.dtype.element_ty), mask=mask)


def common_format(tensors):
    for memory_format, dims in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
        if all(
            t.dim() == dims and t.is_contiguous(memory_format=memory_format) and not t.is_contiguous() for t in tensors
        ):
            return memory_format
    return torch.contiguous_format


def wrapper(tensors, dim=0):
    dtype = tensors[0].dtype
    for t in tensors:
        if t.dtype != dtype:
            dtype = torch.promote_types(dtype, t.dtype)
    kept = [t for t in tensors if t.dim() != 1 or t.numel()] or [tensors[0]]
    dim = dim % kept[0].dim()
    size = list(kept[0].shape)
    size[dim] = sum(t.shape[dim] for t in kept)
    out = torch.empty(size, dtype=dtype, device=kept[0].device, memory_format=common_format(kept))
    start = 0
    for t in kept:
        part = out.narrow(dim, start, t.shape[dim])
        start += t.shape[dim]
        n = t.numel()
        kernel_cat[(triton.cdiv(n, 4096),)](
            t, part, n, tuple(t.shape), t.stride(), part.stride(), BLOCK=4096, num_warps=8
        )
    return out
