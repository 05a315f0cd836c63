"""aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int
    reduction=1) -> Tensor

grad weight (x - t) / max((1 - x) x, 1e-12) over one flat grid, in fp32 (fp64 for fp64), divided by the number of
elements for the mean (1).
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::binary_cross_entropy_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


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
def wide(x):
    """The type to compute in: fp64 for fp64, fp32 for all else."""
    return x if x.dtype.is_fp64() else x.to(tl.float32)


@triton.jit
def kernel_bce_backward(
    grad_ptr,
    x_ptr,
    target_ptr,
    weight_ptr,
    out_ptr,
    n,
    shape,
    grad_stride,
    x_stride,
    target_stride,
    weight_stride,
    out_stride,
    ONE_GRAD: tl.constexpr,
    MEAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = wide(tl.load(x_ptr + strided(i, shape, x_stride), mask=mask, other=0.5))
    target = wide(tl.load(target_ptr + strided(i, shape, target_stride), mask=mask, other=0))
    if ONE_GRAD:
        grad = wide(tl.load(grad_ptr))
    else:
        grad = wide(tl.load(grad_ptr + strided(i, shape, grad_stride), mask=mask, other=0))
    if MEAN:
        grad = grad / n
    slope = (1 - x) * x
    out = grad * (x - target) / tl.where(slope < 1e-12, 1e-12, slope)
    if weight_ptr is not None:
        out = out * wide(tl.load(weight_ptr + strided(i, shape, weight_stride), mask=mask, other=0))
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


def paired(t, like):
    """The same elements in the shape of another, as ATen on the CPU pairs them: [5, 1] with [1, 5] are five pairs."""
    return t if t.shape == like.shape else t.squeeze().expand(like.squeeze().shape).view(like.shape)


def wrapper(grad_output, self, target, weight=None, reduction=1):
    out = torch.empty_like(self)
    n = out.numel()
    one = grad_output.numel() == 1
    grad, target = (
        t if one or t.shape == self.shape else paired(t, self) for t, one in ((grad_output, one), (target, False))
    )
    given = [self if one else grad, self, target, self if weight is None else weight]
    if given[3].shape != self.shape:
        given[3] = weight.expand(self.shape)
    shape, strides = walk(*given, out)
    kernel_bce_backward[(triton.cdiv(n, 2048),)](
        grad, self, target, weight, out, n, shape, *strides, ONE_GRAD=one, MEAN=reduction == 1, BLOCK=2048, num_warps=8
    )
    return out
