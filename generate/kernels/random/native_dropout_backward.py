"""aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor

One flat grid over the output: the gradient times the mask times the scale, in fp32, of float64 in fp64.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::native_dropout_backward",)
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
def kernel_dropout_backward(
    grad_ptr,
    mask_ptr,
    out_ptr,
    n,
    scale: tl.float64,
    shape,
    grad_stride,
    mask_stride,
    out_stride,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    grad = tl.load(grad_ptr + strided(i, shape, grad_stride), mask=inside)
    mask = tl.load(mask_ptr + strided(i, shape, mask_stride), mask=inside)
    dtype = tl.float64 if out_ptr.dtype.element_ty.is_fp64() else tl.float32
    scale = (tl.zeros([1], tl.float64) + scale).to(dtype)
    out = grad.to(dtype) * mask.to(dtype) * scale
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(out_ptr.dtype.element_ty), mask=inside)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie dense in the same order."""
    if not all(t.is_contiguous() for t in tensors):
        order = sorted(range(tensors[0].dim()), key=tensors[0].stride, reverse=True)
        tensors = [t.permute(order) for t in tensors]
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


def wrapper(grad_output, mask, scale):
    tensors = torch.broadcast_tensors(grad_output, mask)
    dtype = torch.result_type(grad_output, mask)
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()  # as of a product with the scale
    out = empty_broadcast(tensors, dtype)
    n = out.numel()
    shape, (out_stride, grad_stride, mask_stride) = walk(out, *tensors)
    kernel_dropout_backward[(triton.cdiv(n, 4096),)](
        tensors[0],
        tensors[1],
        out,
        n,
        scale,
        shape,
        grad_stride,
        mask_stride,
        out_stride,
        BLOCK=4096,
        num_warps=8,
    )
    return out
