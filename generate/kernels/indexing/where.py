"""aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor

One flat grid over the broadcast output. The operands are converted to the type that ATen promotes them to; the
condition is a bool, or a byte that is true where it is not zero.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::where.self",)
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
    """x in another type; fp16 and bf16 are made from fp32, as in ATen. In its own type it is left alone, bit by bit."""
    if x.dtype == dtype:
        return x
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_where(
    condition_ptr,
    x_ptr,
    y_ptr,
    out_ptr,
    n,
    shape,
    condition_stride,
    x_stride,
    y_stride,
    out_stride,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    condition = tl.load(condition_ptr + strided(i, shape, condition_stride), mask=mask)
    x = convert(tl.load(x_ptr + strided(i, shape, x_stride), mask=mask), dtype)
    y = convert(tl.load(y_ptr + strided(i, shape, y_stride), mask=mask), dtype)
    tl.store(out_ptr + strided(i, shape, out_stride), tl.where(condition != 0, x, y), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def empty_broadcast(tensors, dtype):
    """New tensor of the broadcast shape, its dimensions in memory ordered as the operands' (TensorIterator's rule)."""
    shape = tensors[0].shape
    order = list(range(len(shape)))[::-1]  # fastest dimension first
    for i in range(1, len(order)):
        k = i
        for j in range(i - 1, -1, -1):
            sign = stride_order(tensors, order[j], order[k])
            if sign < 0:
                break
            if sign > 0:
                order[j], order[k], k = order[k], order[j], j
    out = torch.empty([shape[d] for d in order[::-1]], dtype=dtype, device=tensors[0].device)
    return out.permute([order[::-1].index(d) for d in range(len(shape))])


def stride_order(tensors, a, b):
    """Positive where dimension a has to lie outside b, negative where inside, 0 where no operand tells."""
    for t in tensors:
        if t.stride(a) == 0 or t.stride(b) == 0:
            continue
        if t.stride(a) != t.stride(b):
            return t.stride(a) - t.stride(b)
        if t.shape[a] > t.shape[b]:
            return 1
    return 0


def wrapper(condition, self, other, *, out=None):
    tensors = torch.broadcast_tensors(condition, self, other)
    if out is None:
        out = empty_broadcast(tensors, torch.result_type(self, other))
    n = out.numel()
    shape, strides = walk(*tensors, out)
    kernel_where[(triton.cdiv(n, 4096),)](*tensors, out, n, shape, *strides, BLOCK=4096, num_warps=8)
    return out
