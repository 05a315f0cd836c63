"""aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt
    ignore_index, Tensor total_weight) -> Tensor

-weight[target] * grad at the target's class of each pixel, divided by total_weight for the mean (1); 0 everywhere else
and in ignored pixels.
"""

import torch
import triton
import triton.language as tl
from blocks.class_losses import are_wide, expect_pixels
from blocks.offsets import plain, plain_value
from blocks.types import compute_types, identical_dtypes

OVERLOADS = ("aten::nll_loss2d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def kernel_nll_loss2d_backward(
    grad_ptr,
    target_ptr,
    weight_ptr,
    total_ptr,
    out_ptr,
    n,
    sizes,
    grad_strides,
    target_strides,
    weight_stride,
    ignore_index,
    OPMATH: tl.constexpr,
    MEAN: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """sizes: numbers of classes, of lines and of pixels of a line."""
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    inside = i < plain_value(n)
    classes, height, width = plain_value(sizes[0]), plain_value(sizes[1]), plain_value(sizes[2])
    x = i % width
    y = i // width % height
    plane = i // (width * height)
    image, own = plane // classes, plane % classes
    place = image * plain_value(target_strides[0]) + y * plain_value(target_strides[1])
    target = tl.load(target_ptr + place + x * plain_value(target_strides[2]), mask=inside, other=0)
    hit = inside & (target != ignore_index) & (target == own)
    place = image * plain_value(grad_strides[0]) + y * plain_value(grad_strides[1]) + x * plain_value(grad_strides[2])
    grad = -tl.load(grad_ptr + place, mask=hit, other=0).to(OPMATH)
    if weight_ptr is not None:
        grad *= tl.load(weight_ptr + own * plain_value(weight_stride), mask=hit, other=0).to(OPMATH)
    if MEAN:
        grad /= tl.load(total_ptr).to(OPMATH)
    tl.store(out_ptr + i, tl.where(hit, grad, 0).to(out_ptr.dtype.element_ty), mask=inside)


def wrapper(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    expect_pixels(self, target, weight)
    identical_dtypes(self, grad_output, total_weight)
    grad = grad_output if reduction == 0 else grad_output.view(-1).narrow(0, 0, 1).expand(target.shape)
    if grad.shape != target.shape or grad_output.numel() != grad.numel() and grad_output.numel() != 1:
        raise RuntimeError(f"gradient {tuple(grad_output.shape)} of {tuple(target.shape)} losses")
    out = torch.empty_like(self)
    if total_weight.numel() != 1 or not out.is_contiguous():
        raise RuntimeError(f"{total_weight.numel()} total weights, or scores of strides {self.stride()}")
    n = out.numel()
    kernel_nll_loss2d_backward[(triton.cdiv(n, 2048),)](
        grad,
        target,
        weight,
        total_weight,
        out,
        plain(n),
        tuple([plain(k) for k in self.shape[1:]]),
        tuple([plain(k) for k in grad.stride()]),
        tuple([plain(k) for k in target.stride()]),
        plain(0 if weight is None else weight.stride(0)),
        ignore_index,
        OPMATH=compute_types(self.dtype)[1],
        MEAN=reduction == 1,
        WIDE=are_wide(n, grad, target),
        BLOCK=2048,
        num_warps=8,
    )
    return out
