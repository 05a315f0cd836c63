"""aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor

grad * (Phi(x) + x * phi(x)) over one flat grid in fp32. 'tanh' differentiates x * sigmoid(2u) with u = sqrt(2/pi) (x +
0.044715 x^3): s + 2 x s (1 - s) u'.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::gelu_backward",)
DTYPES = ("bfloat16", "float16", "float32")


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
def kernel_gelu_backward(
    grad_ptr, x_ptr, out_ptr, n, shape, grad_stride, x_stride, out_stride, TANH: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    grad = tl.load(grad_ptr + strided(i, shape, grad_stride), mask=mask).to(tl.float32)
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask).to(tl.float32)
    if TANH:
        u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        du = 0.7978845608028654 * (1 + 0.134145 * x * x)
        s = 1 / (1 + tl.exp(-2 * u))
        slope = s + 2 * x * s * (1 - s) * du
    else:
        slope = 0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)
    tl.store(out_ptr + strided(i, shape, out_stride), (grad * slope).to(out_ptr.dtype.element_ty), mask=mask)


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


def wrapper(grad_output, self, *, approximate="none", out=None):
    tensors = torch.broadcast_tensors(grad_output, self)
    if out is None:
        out = empty_broadcast(tensors, self.dtype)
    n = out.numel()
    shape, strides = walk(*tensors, out)
    kernel_gelu_backward[(triton.cdiv(n, 4096),)](
        *tensors, out, n, shape, *strides, TANH=approximate == "tanh", BLOCK=4096, num_warps=8
    )
    return out
