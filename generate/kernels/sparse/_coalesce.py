"""aten::_coalesce(Tensor self) -> Tensor

Entries are sorted by their row (the row-major flat index of the sparse dimensions) with a stable radix sort, BITS bits
a pass: each block counts its digits, a scan turns the counts into places, and entries go there in their order. Where a
sorted row differs from the one before, a new row of the result begins; a program sums the values of each in fp32 or
int64, in an order that does not change from run to run. How many rows there are is read back before that.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_coalesce",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
LAYOUTS = ("sparse_coo", "strided")

BITS = 5
BLOCK_SORT = 512


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
def widen(x):
    """The type to add up in: fp32 for halves, int64 for integers and bools."""
    return x if x.dtype == tl.float64 else x.to(tl.float32) if x.dtype.is_floating() else x.to(tl.int64)


@triton.jit
def kernel_copy(x_ptr, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=i < n)
    tl.store(out_ptr + strided(i, shape, out_stride), x, mask=i < n)


@triton.jit
def kernel_rows(indices_ptr, rows_ptr, order_ptr, nnz, stride, row_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < nnz
    row = tl.zeros_like(i)
    for k in tl.static_range(len(row_stride)):
        row += tl.load(indices_ptr + k * stride[0] + i * stride[1], mask=mask, other=0).to(tl.int64) * row_stride[k]
    tl.store(rows_ptr + i, row, mask=mask)
    tl.store(order_ptr + i, i, mask=mask)


@triton.jit
def one_hot(rows_ptr, i, nnz, shift, DIGITS: tl.constexpr):
    """[BLOCK, DIGITS], 1 where an entry has the digit."""
    digit = (tl.load(rows_ptr + i, mask=i < nnz, other=0) >> shift) % DIGITS
    return ((digit[:, None] == tl.arange(0, DIGITS)[None, :]) & (i < nnz)[:, None]).to(tl.int32)


@triton.jit
def kernel_count(rows_ptr, counts_ptr, nnz, shift, DIGITS: tl.constexpr, BLOCK: tl.constexpr):
    """counts: [DIGITS, blocks]"""
    block = tl.program_id(0).to(tl.int64)
    hot = one_hot(rows_ptr, block * BLOCK + tl.arange(0, BLOCK), nnz, shift, DIGITS)
    tl.store(counts_ptr + tl.arange(0, DIGITS) * tl.num_programs(0) + block, tl.sum(hot, 0).to(tl.int64))


@triton.jit
def kernel_scan(counts_ptr, n, BLOCK: tl.constexpr):
    """Each count becomes the sum of those before it; the sum of all comes behind the last."""
    total = tl.zeros([], tl.int64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        count = tl.load(counts_ptr + i, mask=i < n, other=0)
        tl.store(counts_ptr + i, total + tl.cumsum(count, 0) - count, mask=i < n)
        total += tl.sum(count, 0)
    tl.store(counts_ptr + n, total)


@triton.jit
def kernel_place(
    rows_ptr, order_ptr, places_ptr, rows_out_ptr, order_out_ptr, nnz, shift, DIGITS: tl.constexpr, BLOCK: tl.constexpr
):
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    mask = i < nnz
    hot = one_hot(rows_ptr, i, nnz, shift, DIGITS)
    first = tl.load(places_ptr + tl.arange(0, DIGITS) * tl.num_programs(0) + block)
    place = tl.sum(hot * (first[None, :] + tl.cumsum(hot, 0) - 1), 1)
    tl.store(rows_out_ptr + place, tl.load(rows_ptr + i, mask=mask), mask=mask)
    tl.store(order_out_ptr + place, tl.load(order_ptr + i, mask=mask), mask=mask)


@triton.jit
def begins(rows_ptr, i, nnz):
    """1 where a sorted entry is the first of its row."""
    row = tl.load(rows_ptr + i, mask=i < nnz, other=0)
    before = tl.load(rows_ptr + i - 1, mask=(i > 0) & (i < nnz), other=-1)
    return ((row != before) & (i < nnz)).to(tl.int64)


@triton.jit
def kernel_count_rows(rows_ptr, counts_ptr, nnz, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    tl.store(counts_ptr + block, tl.sum(begins(rows_ptr, i, nnz), 0))


@triton.jit
def kernel_starts(
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
    """Where each row begins among the sorted entries, and its indices; behind the last, where that ends."""
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    first = begins(rows_ptr, i, nnz)
    place = tl.load(places_ptr + block) + tl.cumsum(first, 0) - first
    mask = first != 0
    tl.store(starts_ptr + place, i, mask=mask)
    entry = tl.load(order_ptr + i, mask=mask, other=0)
    for k in tl.static_range(DIMS):
        index = tl.load(indices_ptr + k * stride[0] + entry * stride[1], mask=mask)
        tl.store(out_ptr + k * out_stride + place, index, mask=mask)
    if block == tl.num_programs(0) - 1:
        tl.store(starts_ptr + tl.load(places_ptr + block + 1), nnz)


@triton.jit
def kernel_sum_rows(
    values_ptr,
    order_ptr,
    starts_ptr,
    out_ptr,
    stride,
    shape,
    column_stride,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    width = 1
    for k in tl.static_range(len(shape)):
        width *= shape[k]
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    start, end = tl.load(starts_ptr + row), tl.load(starts_ptr + row + 1)
    total = widen(tl.zeros([ROWS, COLUMNS], values_ptr.dtype.element_ty))
    values_ptr += strided(column, shape, column_stride)[None, :]
    for i in range(start, end, ROWS):
        mask = i + tl.arange(0, ROWS) < end
        entry = tl.load(order_ptr + i + tl.arange(0, ROWS), mask=mask, other=0)
        inside = mask[:, None] & (column < width)[None, :]
        total += widen(tl.load(values_ptr + entry[:, None] * stride, mask=inside, other=0))
    out = tl.sum(total, 0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * width + column, out, mask=column < width)


def copied(x):
    out = torch.empty_like(x)
    if x.numel():
        n, shape = x.numel(), tuple(x.shape)
        kernel_copy[(triton.cdiv(n, 1024),)](x, out, n, shape, x.stride(), out.stride(), BLOCK=1024)
    return out


def coalesced(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=True, check_invariants=False)


def sort(rows, order, counts, nnz, largest):
    """Rows in ascending order, and the entries that they are of; rows are at most `largest`."""
    blocks, digits = triton.cdiv(nnz, BLOCK_SORT), 2**BITS
    spare = torch.empty_like(rows), torch.empty_like(order)
    shift = 0
    while largest >> shift:
        kernel_count[(blocks,)](rows, counts, nnz, shift, DIGITS=digits, BLOCK=BLOCK_SORT, num_warps=8)
        kernel_scan[(1,)](counts, digits * blocks, BLOCK=4096, num_warps=8)
        kernel_place[(blocks,)](rows, order, counts, *spare, nnz, shift, DIGITS=digits, BLOCK=BLOCK_SORT, num_warps=8)
        (rows, order), spare = spare, (rows, order)
        shift += BITS
    return rows, order


def wrapper(self):
    indices, values, size = self._indices(), self._values(), self.shape
    dims, nnz = indices.shape
    if nnz < 2:
        return coalesced(copied(indices), copied(values), size)
    blocks = triton.cdiv(nnz, BLOCK_SORT)
    rows, order, starts = [torch.empty(nnz + 1, dtype=torch.int64, device=indices.device) for _ in range(3)]
    counts = torch.empty(2**BITS * blocks + 1, dtype=torch.int64, device=indices.device)
    out_indices = torch.empty(indices.shape, dtype=indices.dtype, device=indices.device)
    out_values = torch.empty(values.shape, dtype=values.dtype, device=values.device)
    row_stride = tuple(math.prod(size[k + 1 : dims]) for k in range(dims))
    kernel_rows[(triton.cdiv(nnz, 1024),)](indices, rows, order, nnz, indices.stride(), row_stride, BLOCK=1024)
    rows, order = sort(rows, order, counts, nnz, math.prod(size[:dims]) - 1)
    kernel_count_rows[(blocks,)](rows, counts, nnz, BLOCK=BLOCK_SORT)
    kernel_scan[(1,)](counts, blocks, BLOCK=4096, num_warps=8)
    kernel_starts[(blocks,)](
        rows, order, counts, indices, starts, out_indices, nnz, indices.stride(), nnz, DIMS=dims, BLOCK=BLOCK_SORT
    )
    found = counts.narrow(0, blocks, 1).item()
    width = math.prod(values.shape[1:])
    if width:
        columns = min(triton.next_power_of_2(width), 256)
        kernel_sum_rows[(found, triton.cdiv(width, columns))](
            values,
            order,
            starts,
            out_values,
            values.stride(0),
            tuple(values.shape[1:]),
            values.stride()[1:],
            ROWS=1024 // columns,
            COLUMNS=columns,
        )
    return coalesced(out_indices.narrow(1, 0, found), out_values.narrow(0, 0, found), size)
