"""Sums of a dense tensor and a sparse COO tensor.

Rows of the sparse tensor, which may occur several times, are added to a copy of the dense one by atomics.
Some dtypes have no atomics, or too few bits to accumulate in. For these, each row's sum first goes to the
row's first entry, in fp32 or int64.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.offsets import plain, plain_value, strided

__all__ = ["add_sparse"]


@triton.jit
def widen(x):
    """Convert to the accumulation dtype: fp64 for float64, fp32 for other floats, int64 for integers and bools."""
    floating = x if x.dtype.is_fp64() else x.to(tl.float32)
    return floating if x.dtype.is_floating() else x.to(tl.int64)


@triton.jit
def row_offset(indices_ptr, i, mask, indices_stride, stride):
    """Return the element offset for the row that entry i belongs to: its indices times these strides."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(stride)):
        index = tl.load(indices_ptr + k * indices_stride[0] + i * indices_stride[1], mask=mask, other=0)
        offset += index.to(tl.int64) * stride[k]
    return offset


@triton.jit
def kernel_claim(indices_ptr, first_ptr, nnz, indices_stride, stride, MARK: tl.constexpr, BLOCK: tl.constexpr):
    """Find the first entry for each row that has one: MARK writes nnz to such rows, then the least entry wins.

    Args:
        indices_ptr: [sparse dimensions, nnz], int64, read.
        first_ptr: [possible rows], int64, written.
        nnz: number of entries.
        indices_stride: strides of the indices.
        stride: strides that number the rows, per sparse dimension.
        MARK: True for the first pass, which writes nnz; False for the second, which takes the minimum.
        BLOCK: entries per program.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < nnz
    row = row_offset(indices_ptr, i, mask, indices_stride, stride)
    if MARK:  # entries of one row race, but all of them store the same number
        tl.store(first_ptr + row, tl.zeros_like(i) + nnz, mask=mask)
    else:  # the least entry does not depend on the order; relaxed, because only later launches read it
        tl.atomic_min(first_ptr + row, i, mask=mask, sem="relaxed")


@triton.jit
def kernel_add_rows(
    indices_ptr,
    values_ptr,
    out_ptr,
    first_ptr,
    n,
    alpha,
    indices_stride,
    values_stride,
    row_stride,
    shape,
    shape_stride,
    out_stride,
    BLOCK: tl.constexpr,
):
    """Add alpha times the values to their rows in `out`, or to the sums at the rows' first entries.

    Args:
        indices_ptr: [sparse dimensions, nnz], int64, read.
        values_ptr: [nnz, *shape], read.
        out_ptr: result or sums, updated by atomics.
        first_ptr: [possible rows], each row's first entry, read, or None to add to the rows themselves.
        n: number of elements in the values.
        alpha: factor for the values.
        indices_stride: strides of the indices.
        values_stride: stride of the values from entry to entry.
        row_stride: result strides along the sparse dimensions, or strides that number the rows.
        shape: sizes of the dense dimensions, encoded by `plain`.
        shape_stride: strides of the values along the dense dimensions, encoded by `plain`.
        out_stride: result strides along the dense dimensions, encoded by `plain`.
        BLOCK: elements per program.
    """
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = e < n
    width = 1
    for k in tl.static_range(len(shape)):
        width *= plain_value(shape[k])
    i, column = e // width, e % width
    offset = row_offset(indices_ptr, i, mask, indices_stride, row_stride)
    if first_ptr is not None:
        offset = tl.load(first_ptr + offset, mask=mask, other=0) * width
    value = tl.load(values_ptr + i * values_stride + strided(column, shape, shape_stride, False), mask=mask, other=0)
    value = (widen(value) * alpha).to(out_ptr.dtype.element_ty)
    tl.atomic_add(out_ptr + offset + strided(column, shape, out_stride, False), value, mask=mask, sem="relaxed")


@triton.jit
def kernel_store_rows(
    indices_ptr,
    sums_ptr,
    first_ptr,
    out_ptr,
    n,
    indices_stride,
    claim_stride,
    row_stride,
    shape,
    out_stride,
    BLOCK: tl.constexpr,
):
    """Add each row's sum to the row; only the program lanes at a row's first entry store.

    Args:
        indices_ptr: [sparse dimensions, nnz], int64, read.
        sums_ptr: [nnz, *shape], contiguous sums at the rows' first entries, read.
        first_ptr: [possible rows], each row's first entry, read.
        out_ptr: result, updated.
        n: number of elements in the sums.
        indices_stride: strides of the indices.
        claim_stride: strides that number the rows, per sparse dimension.
        row_stride: result strides along the sparse dimensions.
        shape: sizes of the dense dimensions, encoded by `plain`.
        out_stride: result strides along the dense dimensions, encoded by `plain`.
        BLOCK: elements per program.
    """
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = e < n
    width = 1
    for k in tl.static_range(len(shape)):
        width *= plain_value(shape[k])
    i = e // width
    # a row has one first entry, so a single lane updates each element, without atomics
    mask &= (
        tl.load(first_ptr + row_offset(indices_ptr, i, mask, indices_stride, claim_stride), mask=mask, other=-1) == i
    )
    out_ptr += row_offset(indices_ptr, i, mask, indices_stride, row_stride) + strided(
        e % width, shape, out_stride, False
    )
    total = widen(tl.load(out_ptr, mask=mask)) + tl.load(sums_ptr + e, mask=mask)
    tl.store(out_ptr, total.to(out_ptr.dtype.element_ty), mask=mask)


def row_major(shape):
    return tuple([math.prod(shape[k + 1 :]) for k in range(len(shape))])


def plains(values):
    return tuple([plain(v) for v in values])


def add_sparse(dense, sparse, alpha, out):
    if dense.is_sparse or dense.shape != sparse.shape:
        raise RuntimeError("expected a dense tensor and a sparse one with the same shape")
    if out is None:
        out = torch.empty(dense.shape, dtype=torch.result_type(dense, sparse), device=dense.device)
    if out is not dense:
        elementwise(identity, dense, common=out.dtype, out=out)
    indices, values = sparse._indices(), sparse._values()
    nnz, dims, n = values.shape[0], indices.shape[0], values.numel()
    if not n:
        return out
    grid = (triton.cdiv(n, 1024),)
    shape, of_indices, of_rows = plains(values.shape[1:]), indices.stride(), tuple(out.stride()[:dims])
    of_values, of_columns = (values.stride(0), plains(values.stride()[1:])), plains(out.stride()[dims:])
    if out.dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
        layout = of_indices, of_values[0], of_rows, shape, of_values[1], of_columns
        kernel_add_rows[grid](indices, values, out, None, n, alpha, *layout, BLOCK=1024)
        return out
    claim = row_major(sparse.shape[:dims])
    # uninitialized: the first pass of `kernel_claim` writes each row that has an entry, and no other row is read
    first = torch.empty(math.prod(sparse.shape[:dims]), dtype=torch.int64, device=out.device)
    sums = torch.empty(n, dtype=torch.float32 if out.is_floating_point() else torch.int64, device=out.device)
    elementwise(identity, 0, common=sums.dtype, out=sums)
    for mark in (True, False):
        kernel_claim[(triton.cdiv(nnz, 256),)](indices, first, nnz, of_indices, claim, MARK=mark, BLOCK=256)
    layout = of_indices, of_values[0], claim, shape, of_values[1], plains(row_major(values.shape[1:]))
    kernel_add_rows[grid](indices, values, sums, first, n, alpha, *layout, BLOCK=1024)
    kernel_store_rows[grid](indices, sums, first, out, n, of_indices, claim, of_rows, shape, of_columns, BLOCK=1024)
    return out
