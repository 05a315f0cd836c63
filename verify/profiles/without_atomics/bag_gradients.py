"""Gradients of embedding bags for a chip without atomics.

Each program owns some rows of the table and one column, and reads all items. The work is rows times items times
columns.
"""

import torch
import triton
import triton.language as tl
from blocks.bag_gradients import bag_of, bisection_levels
from blocks.types import compute_types

OWNED_ROWS = 128  # rows of the table per program
ITEMS = 64  # items that a program compares with its rows at once


@triton.jit
def owned_rows_kernel(
    grad_ptr,
    indices_ptr,
    offsets_ptr,
    offset2bag_ptr,
    bag_size_ptr,
    maximum_ptr,
    weights_ptr,
    out_ptr,
    m,
    cols,
    height,
    padding_idx,
    bags,
    grad_stride,
    indices_stride,
    offsets_stride,
    offset2bag_stride,
    bag_size_stride,
    maximum_stride,
    weights_stride,
    OPMATH: tl.constexpr,
    MODE: tl.constexpr,
    BY_FREQUENCY: tl.constexpr,
    LEVELS: tl.constexpr,
    OWN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the gradient of OWN rows of the table in one column.

    Args:
        grad_ptr: [bags, cols], read.
        indices_ptr: Table row per item, read unless MODE is 2.
        offsets_ptr: [bags], first item per bag, or None, read (see `bag_of`).
        offset2bag_ptr: Bag per item, or None, read (see `bag_of`).
        bag_size_ptr: [bags], read if MODE is 1 or 2.
        maximum_ptr: [bags, cols], the winning row per element, read if MODE is 2.
        weights_ptr: Per-sample weight per item, or None, read.
        out_ptr: [height, cols], contiguous, written.
        m: Items, or bags if MODE is 2.
        cols: Columns.
        height: Rows of the table.
        padding_idx: Index whose items contribute nothing.
        bags: Offsets to search in; 0 without `offsets`.
        grad_stride: Strides of `grad`.
        indices_stride: Stride of `indices`.
        offsets_stride: Stride of `offsets`, or 0.
        offset2bag_stride: Stride of `offset2bag`.
        bag_size_stride: Stride of `bag_size`.
        maximum_stride: Strides of `maximum`.
        weights_stride: Stride of `weights`, or 0.
        OPMATH: Compute type.
        MODE: 0 for sum, 1 for mean, 2 for max.
        BY_FREQUENCY: Divide each row by how often its index occurs.
        LEVELS: Bisection steps, from `bisection_levels`.
        OWN: Rows per program.
        BLOCK: Items that are compared with them at once.
    """
    row = (tl.program_id(0) // cols).to(tl.int64) * OWN + tl.arange(0, OWN)
    col = (tl.program_id(0) % cols).to(tl.int64)
    total, count = tl.zeros([OWN], OPMATH), tl.zeros([OWN], tl.int32)
    for start in range(0, m, BLOCK):
        item = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        used = item < m
        if MODE == 2:
            bag = item
            used &= tl.load(bag_size_ptr + bag * bag_size_stride, mask=used, other=0) > 0
            index = tl.load(maximum_ptr + bag * maximum_stride[0] + col * maximum_stride[1], mask=used, other=0)
        else:
            bag = bag_of(item, offset2bag_ptr, offset2bag_stride, offsets_ptr, offsets_stride, bags, used, LEVELS)
            index = tl.load(indices_ptr + item * indices_stride, mask=used, other=0)
        is_own = (index.to(tl.int64)[None, :] == row[:, None]) & used[None, :]
        if MODE != 2:
            count += tl.sum(is_own.to(tl.int32), 1)
            used &= index != padding_idx
        x = tl.load(grad_ptr + bag * grad_stride[0] + col * grad_stride[1], mask=used, other=0).to(OPMATH)
        if weights_ptr is not None:
            x = x * tl.load(weights_ptr + item * weights_stride, mask=used, other=0).to(OPMATH)
        if MODE == 1:
            size = tl.load(bag_size_ptr + bag * bag_size_stride, mask=used, other=1)
            x = x / tl.maximum(size, 1).to(OPMATH)
        total += tl.sum(tl.where(is_own & used[None, :], x[None, :], 0), 1)
    if BY_FREQUENCY:
        total = total / tl.maximum(count, 1).to(OPMATH)
    tl.store(out_ptr + row * cols + col, total.to(out_ptr.dtype.element_ty), mask=row < height)


def dense_bag_gradient(
    grad, indices, offsets, offset2bag, bag_size, maximum, num_weights, by_frequency, mode, weights, padding_idx
):
    """Return the dense table gradient, [num_weights, cols]; the arguments are those of the library's block."""
    cols = grad.shape[1]
    out = torch.empty((num_weights, cols), dtype=grad.dtype, device=grad.device)
    m = min(grad.shape[0], bag_size.shape[0]) if mode == 2 else indices.shape[0]
    bags = 0 if offsets is None else min(offsets.shape[0], grad.shape[0])
    if out.numel():
        owned_rows_kernel[(triton.cdiv(num_weights, OWNED_ROWS) * cols,)](
            grad, indices, offsets, None if offsets is not None and not offset2bag.shape[0] else offset2bag, bag_size,
            maximum, weights, out, m, cols, num_weights, padding_idx, bags, grad.stride(), indices.stride(0),
            0 if offsets is None else offsets.stride(0), offset2bag.stride(0), bag_size.stride(0), maximum.stride(),
            0 if weights is None else weights.stride(0), OPMATH=compute_types(grad.dtype)[1], MODE=mode,
            BY_FREQUENCY=by_frequency and mode != 2, LEVELS=bisection_levels(bags), OWN=OWNED_ROWS, BLOCK=ITEMS,
        )  # fmt: skip
    return out
