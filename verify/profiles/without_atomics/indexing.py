"""Index maps for a chip without atomics.

Where the library's block combines values by atomics, here each program owns some elements of the output. It reads all
values, and combines those for its own elements in registers. So the work is elements times values: much more than with
atomics, but exact and in a fixed order.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.elementwise import SHORT_LAUNCH
from blocks.indexing import chosen_offset, tile_offset
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer, integer_value, integers, merge, reach, small_tile
from blocks.types import compute_types, number_value

OWNED = 128  # elements of the output per program
OWNED_VALUES = 64  # values that a program compares with its elements at once


@triton.jit
def indexing_kernel(
    source_ptr,
    indices,
    out_ptr,
    claims_ptr,
    m,
    n,
    shape,
    source_stride,
    out_stride,
    index_strides,
    sizes,
    steps,
    MODE: tl.constexpr,
    BY_ROW: tl.constexpr,
    BY_COL: tl.constexpr,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Gather from the source, or scatter it to the output, one [BLOCK_M, BLOCK_N] tile per program.

    Args:
        source_ptr: Strided tensor, read; if MODE is "gather", it is indexed.
        indices: Tuple of pointers to index tensors, read with `index_strides`.
        out_ptr: Strided tensor, written; in all modes but "gather" it is indexed.
        claims_ptr: The source offset that each element of the output takes, read if MODE is "last"; else None.
        m: Rows of the iteration space.
        n: Columns of the iteration space.
        shape: Sizes of the row dimensions.
        source_stride: Strides of the source in the iteration space, 0 along index dimensions if it is indexed.
        out_stride: Strides of the output in the iteration space, 0 along index dimensions if it is indexed.
        index_strides: Strides of each index tensor in the iteration space.
        sizes: Size along each indexed dimension.
        steps: Stride along each indexed dimension, in elements.
        MODE: "gather", "scatter" or "last".
        BY_ROW: True if an index depends on the row.
        BY_COL: True if an index depends on the column.
        PLAIN: True if integers are encoded by `plain`.
        BLOCK_M: Rows per tile.
        BLOCK_N: Columns per tile.
    """
    m, n = integer_value(m, PLAIN), integer_value(n, PLAIN)
    across = tl.cdiv(n, BLOCK_N)
    row = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = (tl.program_id(0) % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < m)[:, None] & (col < n)[None, :]
    read = tile_offset(row, col, shape, source_stride, PLAIN)
    write = tile_offset(row, col, shape, out_stride, PLAIN)
    chosen, valid = chosen_offset(indices, row, col, m, n, shape, index_strides, sizes, steps, BY_ROW, BY_COL, PLAIN)
    if MODE == "gather":
        tl.store(out_ptr + write, tl.load(source_ptr + (read + chosen), mask=mask & valid, other=0), mask=mask)
    else:
        mask &= valid
        if MODE == "last":
            mask &= tl.load(claims_ptr + (write + chosen), mask=mask, other=-1) == read
        x = tl.load(source_ptr + read, mask=mask).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + (write + chosen), x, mask=mask)


@triton.jit
def multiply(x, y):
    return x * y


@triton.jit
def owned_kernel(
    source_ptr,
    indices,
    out_ptr,
    alpha,
    m,
    n,
    end,
    shape,
    source_stride,
    out_stride,
    index_strides,
    sizes,
    steps,
    MODE: tl.constexpr,
    OPMATH: tl.constexpr,
    NEUTRAL: tl.constexpr,
    BY_ROW: tl.constexpr,
    BY_COL: tl.constexpr,
    OWN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Combine with the output's elements the source's elements whose indices choose them, OWN per program.

    Args:
        source_ptr: Strided tensor, read.
        indices: Tuple of pointers to index tensors, read with `index_strides`.
        out_ptr: Strided tensor, read and written where an index chooses an element.
        alpha: Factor for mode "add", or None.
        m: Rows of the iteration space.
        n: Columns of the iteration space.
        end: Largest offset in the output, plus 1.
        shape: Sizes of the row dimensions.
        source_stride: Strides of the source in the iteration space.
        out_stride: Strides of the output in the iteration space, 0 along index dimensions.
        index_strides: Strides of each index tensor in the iteration space.
        sizes: Size along each indexed dimension.
        steps: Stride along each indexed dimension, in elements.
        MODE: "add", "max", "min", "multiply", or "claim" for the largest source offset.
        OPMATH: Type of alpha in mode "add"; in mode "multiply" the type whose bits the integers hold.
        NEUTRAL: Value that changes nothing in this mode.
        BY_ROW: True if an index depends on the row.
        BY_COL: True if an index depends on the column.
        OWN: Offsets in the output per program.
        BLOCK_M: Rows per tile of the source.
        BLOCK_N: Columns per tile of the source.
    """
    owned = tl.program_id(0).to(tl.int64) * OWN + tl.arange(0, OWN)
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    compute: tl.constexpr = OPMATH if MODE == "multiply" else dtype
    total = tl.full([OWN], NEUTRAL, compute)
    is_chosen = owned < 0
    across = tl.cdiv(n, BLOCK_N)
    for tile in range(tl.cdiv(m, BLOCK_M) * across):
        row = (tile // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
        col = (tile % across).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = (row < m)[:, None] & (col < n)[None, :]
        read = tile_offset(row, col, shape, source_stride, False)
        chosen, valid = chosen_offset(
            indices, row, col, m, n, shape, index_strides, sizes, steps, BY_ROW, BY_COL, False
        )
        target = tl.where(mask & valid, tile_offset(row, col, shape, out_stride, False) + chosen, -1)
        x = read.to(dtype) if MODE == "claim" else tl.load(source_ptr + read, mask=mask, other=0).to(dtype)
        if MODE == "add" and alpha is not None:
            x = x * number_value(alpha, OPMATH)
        if MODE == "multiply":
            x = x.to(OPMATH, bitcast=True)
        is_own = tl.reshape(target, [1, BLOCK_M * BLOCK_N]) == owned[:, None]
        x = tl.where(is_own, tl.reshape(x, [1, BLOCK_M * BLOCK_N]).to(compute), tl.full([1, 1], NEUTRAL, compute))
        is_chosen |= tl.max(is_own.to(tl.int32), 1) > 0
        if MODE == "add":
            total += tl.sum(x, 1)
        elif MODE == "multiply":
            total *= tl.reduce(x, 1, multiply)
        elif MODE == "min":
            total = tl.minimum(total, tl.min(x, 1))
        else:
            total = tl.maximum(total, tl.max(x, 1))
    mask = is_chosen & (owned < end)
    current = tl.load(out_ptr + owned, mask=mask, other=0)
    if MODE == "add":
        total = current + total
    elif MODE == "multiply":
        total = (current.to(OPMATH, bitcast=True) * total).to(OPMATH).to(dtype, bitcast=True)
    elif MODE == "min":
        total = tl.minimum(current, total)
    else:
        total = tl.maximum(current, total)
    tl.store(out_ptr + owned, total, mask=mask)


def launch_indexing(mode, source, source_stride, out, out_stride, alpha, shape, how, elements, opmath=None):
    """Launch the kernel for a mode over `shape`; the arguments are those of the library's block."""
    chosen, index_strides, sizes, steps = how
    merged, strides = merge(shape, [source_stride, out_stride, *index_strides])
    merged = merged or (math.prod(shape),)
    source_stride, out_stride, *index_strides = strides
    m, n = math.prod(merged[:-1]), merged[-1]
    BY_ROW, BY_COL = any([any(s[:-1]) for s in index_strides]), any([s[-1] for s in index_strides])
    layout = merged[:-1], source_stride, out_stride, *index_strides, sizes, steps
    if mode in ("gather", "scatter", "last"):
        BLOCK_M, BLOCK_N = small_tile(n, 1024)
        if m * n >= SHORT_LAUNCH:
            BLOCK_N = min(triton.next_power_of_2(n), 1024)
            BLOCK_M = min(triton.next_power_of_2(m), elements // BLOCK_N)
        PLAIN = m * n < SMALL_TENSOR
        rows, read, write, *reads, sizes, steps = [integers(values, PLAIN) for values in layout]
        indexing_kernel[(triton.cdiv(m, BLOCK_M) * triton.cdiv(n, BLOCK_N),)](
            source, tuple(chosen), out, alpha, integer(m, PLAIN), integer(n, PLAIN), rows, read, write, tuple(reads),
            sizes, steps, MODE=mode, BY_ROW=BY_ROW, BY_COL=BY_COL, PLAIN=PLAIN, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,
            num_warps=max(1, min(BLOCK_M * BLOCK_N // 256, 8)),
        )  # fmt: skip
        return
    if mode in ("add", "multiply"):
        first = int(mode == "multiply")
    else:
        first = torch.iinfo(out.dtype).max if mode == "min" else torch.iinfo(out.dtype).min
    end = reach(out.shape, [out.stride()]) + 1
    BLOCK_N = min(triton.next_power_of_2(n), OWNED_VALUES)
    rows, read, write, *reads, sizes, steps = [tuple(values) for values in layout]
    owned_kernel[(triton.cdiv(end, OWNED),)](
        source, tuple(chosen), out, alpha, m, n, end, rows, read, write, tuple(reads), sizes, steps, MODE=mode,
        OPMATH=compute_types(opmath or out.dtype)[1], NEUTRAL=first, BY_ROW=BY_ROW, BY_COL=BY_COL, OWN=OWNED,
        BLOCK_M=OWNED_VALUES // BLOCK_N, BLOCK_N=BLOCK_N,
    )  # fmt: skip
