"""aten::_coalesce(Tensor self) -> Tensor

Entries are sorted by row, the row-major flat index in the sparse dimensions. A result row begins at each
sorted entry whose row differs from the one before. A program instance sums one row's values in the compute
dtype, in an order that never changes from run to run. The row count is read back before that.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.compaction import starts_of
from blocks.elementwise import elementwise
from blocks.offsets import strided
from blocks.radix import sort_keys
from blocks.types import compute_types

OVERLOADS = ("aten::_coalesce",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
LAYOUTS = ("sparse_coo", "strided")

BLOCK_SORT = 512  # sorted entries per program instance in both passes, whose block counts have to agree
SUM_TILE = 1024  # elements that a program instance loads at a time: entries x columns


@triton.jit
def entry_rows_kernel(indices_ptr, rows_ptr, nnz, stride, row_stride, BLOCK: tl.constexpr):
    """Compute the flat row number for each entry.

    Args:
        indices_ptr: [sparse dimensions, nnz], read.
        rows_ptr: [nnz] int64, written.
        nnz: Number of entries.
        stride: The two strides of the indices.
        row_stride: Rows per step in each sparse dimension.
        BLOCK: Entries per program instance.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < nnz
    row = tl.zeros_like(i)
    for k in tl.static_range(len(row_stride)):
        row += tl.load(indices_ptr + k * stride[0] + i * stride[1], mask=mask, other=0).to(tl.int64) * row_stride[k]
    tl.store(rows_ptr + i, row, mask=mask)


@triton.jit
def begins(rows_ptr, i, nnz):
    """Return 1 if a sorted entry is the first one in its row, else 0."""
    row = tl.load(rows_ptr + i, mask=i < nnz, other=0)
    before = tl.load(rows_ptr + i - 1, mask=(i > 0) & (i < nnz), other=-1)
    return ((row != before) & (i < nnz)).to(tl.int64)


@triton.jit
def first_entries_kernel(rows_ptr, counts_ptr, nnz, BLOCK: tl.constexpr):
    """Count the rows that begin in each block of sorted entries.

    Args:
        rows_ptr: [nnz] sorted rows, read.
        counts_ptr: [blocks] int64, written.
        nnz: Number of entries.
        BLOCK: Entries per program instance.
    """
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    tl.store(counts_ptr + block, tl.sum(begins(rows_ptr, i, nnz), 0))


@triton.jit
def row_starts_kernel(
    rows_ptr,
    order_ptr,
    places_ptr,
    indices_ptr,
    starts_ptr,
    out_ptr,
    nnz,
    stride,
    out_stride,
    DIMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Store each row's first sorted entry and its indices, and nnz after the last row.

    Args:
        rows_ptr: [nnz] sorted rows, read.
        order_ptr: [nnz], the entry of each sorted row, read.
        places_ptr: [blocks + 1], the number of rows that begin before each block, read.
        indices_ptr: [DIMS, nnz], read.
        starts_ptr: [rows + 1] int64, written.
        out_ptr: [DIMS, rows], written.
        nnz: Number of entries.
        stride: The two strides of the indices.
        out_stride: Stride of the output between dimensions.
        DIMS: Number of sparse dimensions.
        BLOCK: Entries per program instance.
    """
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    first = begins(rows_ptr, i, nnz)
    position = tl.load(places_ptr + block) + tl.cumsum(first, 0) - first
    mask = first != 0
    tl.store(starts_ptr + position, i, mask=mask)
    entry = tl.load(order_ptr + i, mask=mask, other=0)
    for k in tl.static_range(DIMS):
        index = tl.load(indices_ptr + k * stride[0] + entry * stride[1], mask=mask)
        tl.store(out_ptr + k * out_stride + position, index, mask=mask)
    if block == tl.num_programs(0) - 1:
        tl.store(starts_ptr + tl.load(places_ptr + block + 1), nnz)


@triton.jit
def row_sums_kernel(
    values_ptr,
    order_ptr,
    starts_ptr,
    out_ptr,
    stride,
    shape,
    column_stride,
    OPMATH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sum the values of one row, for COLUMNS columns and ROWS entries at a time.

    Args:
        values_ptr: [nnz, *shape], read.
        order_ptr: [nnz], sorted entries, read.
        starts_ptr: [rows + 1], read.
        out_ptr: [rows, *shape], contiguous, written.
        stride: Stride of the values between entries.
        shape: Sizes of the dense dimensions.
        column_stride: Strides of the values in the dense dimensions.
        OPMATH: Triton type of the sums.
        ROWS: Entries that are loaded at a time.
        COLUMNS: Columns per program instance.
    """
    row = tl.program_id(0).to(tl.int64)
    width = 1
    for k in tl.static_range(len(shape)):
        width *= shape[k]
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    start, end = tl.load(starts_ptr + row), tl.load(starts_ptr + row + 1)
    total = tl.zeros([ROWS, COLUMNS], OPMATH)
    values_ptr += strided(column, shape, column_stride, False, False)[None, :]
    for i in range(start, end, ROWS):
        mask = i + tl.arange(0, ROWS) < end
        entry = tl.load(order_ptr + i + tl.arange(0, ROWS), mask=mask, other=0)
        inside = mask[:, None] & (column < width)[None, :]
        total += tl.load(values_ptr + entry[:, None] * stride, mask=inside, other=0).to(OPMATH)
    out = tl.sum(total, 0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * width + column, out, mask=column < width)


def coalesced(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=True, check_invariants=False)


def wrapper(self):
    indices, values, size = self._indices(), self._values(), self.shape
    dims, nnz = indices.shape
    if nnz < 2:
        copies = [elementwise(identity, t, out=torch.empty_like(t)) for t in (indices, values)]
        return coalesced(*copies, size)
    blocks = triton.cdiv(nnz, BLOCK_SORT)
    rows = torch.empty(nnz, dtype=torch.int64, device=indices.device)
    starts = torch.empty(nnz + 1, dtype=torch.int64, device=indices.device)
    counts = torch.empty(blocks, dtype=torch.int64, device=indices.device)
    out_indices = torch.empty(indices.shape, dtype=indices.dtype, device=indices.device)
    out_values = torch.empty(values.shape, dtype=values.dtype, device=values.device)
    row_stride = tuple(math.prod(size[k + 1 : dims]) for k in range(dims))
    entry_rows_kernel[(triton.cdiv(nnz, 1024),)](indices, rows, nnz, indices.stride(), row_stride, BLOCK=1024)
    rows, order = sort_keys(rows, max(math.prod(size[:dims]), 1))
    first_entries_kernel[(blocks,)](rows, counts, nnz, BLOCK=BLOCK_SORT)
    places = starts_of(counts)
    row_starts_kernel[(blocks,)](
        rows, order, places, indices, starts, out_indices, nnz, indices.stride(), nnz, DIMS=dims, BLOCK=BLOCK_SORT
    )
    row_count = places.select(0, blocks).item()
    width = math.prod(values.shape[1:])
    if width:
        columns = min(triton.next_power_of_2(width), 256)
        row_sums_kernel[(row_count, triton.cdiv(width, columns))](
            values,
            order,
            starts,
            out_values,
            values.stride(0),
            tuple(values.shape[1:]),
            values.stride()[1:],
            OPMATH=compute_types(values.dtype)[1],
            ROWS=SUM_TILE // columns,
            COLUMNS=columns,
        )
    return coalesced(out_indices.narrow(1, 0, row_count), out_values.narrow(0, 0, row_count), size)
