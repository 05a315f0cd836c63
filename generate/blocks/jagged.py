"""Rows of items of different lengths: one item after the other, or each padded to one length."""

import torch
import triton
import triton.language as tl
from blocks.offsets import plain, plain_value, strided, walk
from blocks.types import number_argument, number_value


@triton.jit
def jagged_kernel(
    rows_ptr,
    dense_ptr,
    offsets_ptr,
    padding,
    sizes,
    rows_steps,
    dense_steps,
    PAD: tl.constexpr,
    TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Elements of dense [items, length, width] from the rows behind where each item begins, and padding; or, not PAD,
    the rows from dense. sizes: items, length, width, rows, and the stride of the offsets. steps: stride of the first
    dimensions, and how to walk along the others."""
    items, length, width = plain_value(sizes[0]), plain_value(sizes[1]), plain_value(sizes[2])
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < items.to(tl.int64) * length * width
    item, place, part = i // width // length, i // width % length, i % width
    begin = tl.load(offsets_ptr + item * plain_value(sizes[4]), mask=mask, other=0).to(tl.int64)
    end = tl.load(offsets_ptr + (item + 1) * plain_value(sizes[4]), mask=mask, other=0).to(tl.int64)
    row = begin + place
    inside = mask & (row < end) & (row >= 0) & (row < plain_value(sizes[3]))
    rows_ptr += row * plain_value(rows_steps[0]) + strided(part, rows_steps[1][0], rows_steps[1][1][0], False)
    dense_ptr += item * plain_value(dense_steps[0]) + place * plain_value(dense_steps[1])
    dense_ptr += strided(part, dense_steps[2][0], dense_steps[2][1][0], False)
    if PAD:
        x = tl.load(rows_ptr, mask=inside, other=0)
        tl.store(dense_ptr, tl.where(inside, x, number_value(padding, TYPE).to(x.dtype)), mask=mask)
    else:
        tl.store(rows_ptr, tl.load(dense_ptr, mask=inside, other=0), mask=inside)


def move_jagged(rows, dense, offsets, padding):
    """Fills dense [items, length, ...] with rows [rows, ...] and padding, or, where that is None, the rows from it."""
    total = dense.numel()
    if not total:
        return
    items, length = dense.shape[:2]
    sizes = items, length, total // items // length, rows.shape[0], offsets.stride(0)
    inner = range(1, rows.dim()), range(2, dense.dim())
    dtype = dense.dtype
    jagged_kernel[(triton.cdiv(total, 1024),)](
        rows,
        dense,
        offsets,
        number_argument(padding or 0, dtype),
        tuple([plain(size) for size in sizes]),
        (plain(rows.stride(0)), walk([rows], inner[0], True)),
        (plain(dense.stride(0)), plain(dense.stride(1)), walk([dense], inner[1], True)),
        PAD=padding is not None,
        TYPE=tl.float64 if dtype == torch.float64 else tl.float32 if dtype.is_floating_point else tl.int64,
        BLOCK=1024,
    )


def item_offsets(offsets):
    """The offsets of the one dimension that is jagged. Raises RuntimeError."""
    if len(offsets) != 1 or offsets[0].dim() != 1 or not offsets[0].numel():
        raise RuntimeError(f"{len(offsets)} jagged dimensions")
    return offsets[0]
