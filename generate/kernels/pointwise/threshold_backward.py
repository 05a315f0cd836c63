"""aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor

The gradient where self > threshold or self is NaN, else 0, over one flat grid. The threshold comes in fp64 and is
rounded to the tensor's type, as in ATen.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::threshold_backward",)
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
def kernel_threshold_backward(
    grad_ptr, x_ptr, out_ptr, threshold: tl.float64, n, shape, grad_stride, x_stride, out_stride, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    grad = tl.load(grad_ptr + strided(i, shape, grad_stride), mask=mask).to(out_ptr.dtype.element_ty)
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask)
    out = tl.where(x <= tl.full([], threshold, x.dtype), tl.zeros_like(grad), grad)
    tl.store(out_ptr + strided(i, shape, out_stride), out, mask=mask)


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


def operands(out, *tensors):
    """The tensors in their common shape, and the destination: a new one of the common dtype if there is none."""
    first = tensors[0]
    alike = all(t.shape == first.shape and t.dtype == first.dtype for t in tensors)
    if not alike:
        tensors = torch.broadcast_tensors(*tensors)
    if out is not None:
        return tensors, out
    if alike and all(t.is_contiguous() for t in tensors):
        return tensors, torch.empty_like(first)
    dtype = first.dtype
    for t in tensors[1:]:
        dtype = torch.promote_types(dtype, t.dtype)
    return tensors, empty_broadcast(tensors, dtype)


def wrapper(grad_output, self, threshold, *, out=None):
    (x, grad), out = operands(out, self, grad_output)  # in ATen's order, which decides how the result lies
    n = out.numel()
    shape, strides = walk(grad, x, out)
    kernel_threshold_backward[(triton.cdiv(n, 4096),)](
        grad, x, out, float(threshold), n, shape, *strides, BLOCK=4096, num_warps=8
    )
    return out
