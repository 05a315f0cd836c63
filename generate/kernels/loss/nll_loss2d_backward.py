"""aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt
    ignore_index, Tensor total_weight) -> Tensor

The gradient is -weight[target] * grad at each pixel's target class. For the mean (1), it is divided by
total_weight. It is 0 at other classes and in ignored pixels.
"""

import torch
import triton
import triton.language as tl
from blocks.class_losses import are_wide, expect_pixels
from blocks.offsets import plain, plain_value
from blocks.types import compute_types, identical_dtypes

OVERLOADS = ("aten::nll_loss2d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")

CLASS_TILE = 32  # classes per program instance, which share one read of target and gradient


@triton.jit
def kernel_nll_loss2d_backward(
    grad_ptr,
    target_ptr,
    weight_ptr,
    total_ptr,
    out_ptr,
    sizes,
    grad_strides,
    target_strides,
    weight_stride,
    ignore_index,
    OPMATH: tl.constexpr,
    MEAN: tl.constexpr,
    WIDE: tl.constexpr,
    CLASSES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradient for BLOCK pixels in one image and CLASSES classes.

    The target is read once for all CLASSES classes. Integer arguments are encoded by `plain`, except
    ignore_index.

    Args:
        grad_ptr: [images, height, width], read.
        target_ptr: [images, height, width] int64, read.
        weight_ptr: [classes], read, or None.
        total_ptr: One element, the total weight, read if MEAN.
        out_ptr: [images, classes, height, width], contiguous, written.
        sizes: (classes, pixels per image, width).
        grad_strides: The three strides of the gradient.
        target_strides: The three strides of the targets.
        weight_stride: Stride of the weights; 0 if there are none.
        ignore_index: Class number of pixels that are ignored; not encoded.
        OPMATH: Triton type of the gradient.
        MEAN: Divide by the total weight.
        WIDE: Compute offsets in 64 bits.
        CLASSES: Classes per program instance.
        BLOCK: Pixels per program instance.
    """
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    classes, pixels, width = plain_value(sizes[0]), plain_value(sizes[1]), plain_value(sizes[2])
    blocks, parts = tl.cdiv(pixels, BLOCK), tl.cdiv(classes, CLASSES)
    i = (tl.program_id(0) % blocks).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    first = (tl.program_id(0) // blocks % parts) * CLASSES
    image = (tl.program_id(0) // (blocks * parts)).to(INDEX)
    inside = i < pixels
    y, x = i // width, i % width
    offset = image * plain_value(target_strides[0]) + y * plain_value(target_strides[1])
    target = tl.load(target_ptr + offset + x * plain_value(target_strides[2]), mask=inside, other=-1)
    last = tl.minimum(first + CLASSES, classes)
    counts = (target != ignore_index) & (target >= first) & (target < last)
    offset = image * plain_value(grad_strides[0]) + y * plain_value(grad_strides[1]) + x * plain_value(grad_strides[2])
    grad = -tl.load(grad_ptr + offset, mask=counts, other=0).to(OPMATH)
    if weight_ptr is not None:
        grad *= tl.load(weight_ptr + target * plain_value(weight_stride), mask=counts, other=0).to(OPMATH)
    if MEAN:
        grad /= tl.load(total_ptr).to(OPMATH)
    target_class = tl.where(counts, target, -1).to(tl.int32)
    out_ptr += (image * classes + first) * pixels + i
    for k in range(first, last):
        tl.store(out_ptr, tl.where(target_class == k, grad, 0).to(out_ptr.dtype.element_ty), mask=inside)
        out_ptr += pixels


def wrapper(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    expect_pixels(self, target, weight)
    identical_dtypes(self, grad_output, total_weight)
    grad = grad_output if reduction == 0 else grad_output.view(-1).narrow(0, 0, 1).expand(target.shape)
    if grad.shape != target.shape or grad_output.numel() != grad.numel() and grad_output.numel() != 1:
        raise RuntimeError(f"gradient {tuple(grad_output.shape)} does not fit targets {tuple(target.shape)}")
    out = torch.empty_like(self)
    if total_weight.numel() != 1 or not out.is_contiguous():
        raise RuntimeError(
            f"expected one total weight and contiguous scores, got {total_weight.numel()} and strides {self.stride()}"
        )
    images, classes, height, width = self.shape
    pixels = height * width
    BLOCK = min(triton.next_power_of_2(max(pixels, 64)), 1024)
    programs = images * triton.cdiv(classes, CLASS_TILE) * triton.cdiv(pixels, BLOCK)
    if programs:
        kernel_nll_loss2d_backward[(programs,)](
            grad,
            target,
            weight,
            total_weight,
            out,
            (plain(classes), plain(pixels), plain(width)),
            tuple([plain(k) for k in grad.stride()]),
            tuple([plain(k) for k in target.stride()]),
            plain(0 if weight is None else weight.stride(0)),
            ignore_index,
            OPMATH=compute_types(self.dtype)[1],
            MEAN=reduction == 1,
            WIDE=are_wide(out.numel(), grad, target),
            CLASSES=CLASS_TILE,
            BLOCK=BLOCK,
            num_warps=4,
        )
    return out
