"""aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor

One flat grid over the output. The other operand is a tensor or a Python number; floating point is computed in fp32,
integers and bools in int64, and the result is cast to the type that ATen promotes to.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::add.Tensor", "aten::add.Scalar")
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
def widen(x):
    """The type to compute in: fp32 for floating point, int64 for integers and bools."""
    return x.to(tl.float32) if x.dtype.is_floating() else x.to(tl.int64)


@triton.jit
def kernel_add(
    x_ptr, y, out_ptr, n, alpha, shape, x_stride, y_stride, out_stride, Y_IS_TENSOR: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = widen(tl.load(x_ptr + strided(i, shape, x_stride), mask=mask))
    if Y_IS_TENSOR:
        y = widen(tl.load(y + strided(i, shape, y_stride), mask=mask)) * alpha
    out = x + y
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(out_ptr.dtype.element_ty), mask=mask)


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


def wrapper(self, other, alpha=1, *, out=None):
    is_tensor = isinstance(other, torch.Tensor)
    tensors = torch.broadcast_tensors(self, other) if is_tensor else (self,)
    if out is None:
        out = empty_broadcast(tensors, torch.result_type(self, other))
    n = out.numel()
    y = tensors[-1] if is_tensor else other * alpha
    shape, strides = walk(*tensors, out)
    kernel_add[(triton.cdiv(n, 4096),)](
        tensors[0],
        y,
        out,
        n,
        alpha,
        shape,
        strides[0],
        strides[-2],
        strides[-1],
        Y_IS_TENSOR=is_tensor,
        BLOCK=4096,
        num_warps=8,
    )
    return out
