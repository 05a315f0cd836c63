"""Conversion between jagged rows, stored one item after the other, and a padded dense tensor."""

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
    """Fill `dense` with rows and padding if PAD is set; otherwise fill the rows from `dense`.

    Args:
        rows_ptr: [rows, ...], read if PAD, else written; item k has rows offsets[k] to offsets[k + 1].
        dense_ptr: [items, length, ...], with `width` inner elements, written if PAD, else read.
        offsets_ptr: [items + 1], read.
        padding: Number for the missing rows, encoded by `number_argument`.
        sizes: Items, length, width, rows and the stride of the offsets, encoded by `plain`.
        rows_steps: Stride of the rows, then the `walk` over their inner dimensions.
        dense_steps: Strides of `dense` along items and along length, then the `walk` over its inner dimensions.
        PAD: True to fill `dense`, False to fill the rows.
        TYPE: Type of `padding`.
        BLOCK: Elements of `dense` per program.
    """
    items, length, width = plain_value(sizes[0]), plain_value(sizes[1]), plain_value(sizes[2])
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < items.to(tl.int64) * length * width
    item, position, part = i // width // length, i // width % length, i % width
    begin = tl.load(offsets_ptr + item * plain_value(sizes[4]), mask=mask, other=0).to(tl.int64)
    end = tl.load(offsets_ptr + (item + 1) * plain_value(sizes[4]), mask=mask, other=0).to(tl.int64)
    row = begin + position
    # The offsets are data, so a row that they place outside of `rows` is masked.
    inside = mask & (row < end) & (row >= 0) & (row < plain_value(sizes[3]))
    rows_ptr += row * plain_value(rows_steps[0]) + strided(part, rows_steps[1][0], rows_steps[1][1][0], False)
    dense_ptr += item * plain_value(dense_steps[0]) + position * plain_value(dense_steps[1])
    dense_ptr += strided(part, dense_steps[2][0], dense_steps[2][1][0], False)
    if PAD:
        x = tl.load(rows_ptr, mask=inside, other=0)
        tl.store(dense_ptr, tl.where(inside, x, number_value(padding, TYPE).to(x.dtype)), mask=mask)
    else:
        tl.store(rows_ptr, tl.load(dense_ptr, mask=inside, other=0), mask=inside)


def move_jagged(rows, dense, offsets, padding):
    """Fill `dense` with rows and padding, or fill the rows from `dense` if padding is None.

    `dense` is [items, length, ...] and `rows` is [rows, ...].
    """
    total = dense.numel()
    if not total:
        return
    items, length = dense.shape[:2]
    sizes = items, length, total // items // length, rows.shape[0], offsets.stride(0)
    inner_dims = range(1, rows.dim()), range(2, dense.dim())
    dtype = dense.dtype
    BLOCK = 1024
    jagged_kernel[(triton.cdiv(total, BLOCK),)](
        rows,
        dense,
        offsets,
        number_argument(padding or 0, dtype),
        tuple([plain(size) for size in sizes]),
        (plain(rows.stride(0)), walk([rows], inner_dims[0], True)),
        (plain(dense.stride(0)), plain(dense.stride(1)), walk([dense], inner_dims[1], True)),
        PAD=padding is not None,
        TYPE=tl.float64 if dtype == torch.float64 else tl.float32 if dtype.is_floating_point else tl.int64,
        BLOCK=BLOCK,
    )


def item_offsets(offsets):
    """Return the offsets for the only jagged dimension; raise RuntimeError if there is not exactly one."""
    if len(offsets) != 1 or offsets[0].dim() != 1 or not offsets[0].numel():
        raise RuntimeError(f"expected one jagged dimension with offsets, got {len(offsets)}")
    return offsets[0]
