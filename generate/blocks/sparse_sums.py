"""Sums of a dense and a sparse COO tensor.

Rows of the sparse one, which may be there several times, are added to a copy of the dense one by atomics. Types that
have none, or too few bits to add up in, first get the sum of each row in fp32 or int64 at the row's first entry.
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
    """The type to add up in: fp32, of float64 fp64, of integers and bools int64."""
    floating = x if x.dtype.is_fp64() else x.to(tl.float32)
    return floating if x.dtype.is_floating() else x.to(tl.int64)


@triton.jit
def row_offset(indices_ptr, i, mask, indices_stride, stride):
    """Offset, in elements, of the row that entry i of a sparse tensor is of: its indices times these strides."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(stride)):
        index = tl.load(indices_ptr + k * indices_stride[0] + i * indices_stride[1], mask=mask, other=0)
        offset += index.to(tl.int64) * stride[k]
    return offset


@triton.jit
def kernel_claim(indices_ptr, first_ptr, nnz, indices_stride, stride, MARK: tl.constexpr, BLOCK: tl.constexpr):
    """The first entry of each row that has one: all such rows are marked, then the least entry stays."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < nnz
    row = row_offset(indices_ptr, i, mask, indices_stride, stride)
    if MARK:
        tl.store(first_ptr + row, tl.zeros_like(i) + nnz, mask=mask)
    else:
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
    """Add elements of the values, alpha times, to the rows that their entries are of, or to those of first entries."""
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
    """Add the sum of each row to the row."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = e < n
    width = 1
    for k in tl.static_range(len(shape)):
        width *= plain_value(shape[k])
    i = e // width
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
        raise RuntimeError("a sparse tensor is added to a dense one of its own shape")
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
        given = of_indices, of_values[0], of_rows, shape, of_values[1], of_columns
        kernel_add_rows[grid](indices, values, out, None, n, alpha, *given, BLOCK=1024)
        return out
    claim = row_major(sparse.shape[:dims])
    first = torch.empty(math.prod(sparse.shape[:dims]), dtype=torch.int64, device=out.device)
    sums = torch.empty(n, dtype=torch.float32 if out.is_floating_point() else torch.int64, device=out.device)
    elementwise(identity, 0, common=sums.dtype, out=sums)
    for mark in (True, False):
        kernel_claim[(triton.cdiv(nnz, 256),)](indices, first, nnz, of_indices, claim, MARK=mark, BLOCK=256)
    given = of_indices, of_values[0], claim, shape, of_values[1], plains(row_major(values.shape[1:]))
    kernel_add_rows[grid](indices, values, sums, first, n, alpha, *given, BLOCK=1024)
    kernel_store_rows[grid](indices, sums, first, out, n, of_indices, claim, of_rows, shape, of_columns, BLOCK=1024)
    return out
