"""Sums of a dense tensor and a sparse COO tensor for a chip without atomics.

Each program owns some rows of the result and reads all entries, so each element has one writer, and no store has an
offset that was loaded. The work is rows times entries times columns.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.offsets import plain_value, strided
from blocks.sparse_sums import plains, row_major, row_offset, widen

__all__ = ["add_sparse"]

OWNED_SUMS = 128  # rows of the result per program
ENTRIES = 64  # entries that a program compares with its rows at once


@triton.jit
def kernel_add_rows(
    indices_ptr,
    values_ptr,
    out_ptr,
    nnz,
    rows,
    alpha,
    indices_stride,
    values_stride,
    number_stride,
    row_shape,
    row_stride,
    shape,
    shape_stride,
    out_stride,
    OWN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add alpha times the values to their rows: OWN rows and one column of the dense dimensions per program.

    Args:
        indices_ptr: [sparse dimensions, nnz], int64, read.
        values_ptr: [nnz, *shape], read.
        out_ptr: Result, updated.
        nnz: Number of entries.
        rows: Number of rows.
        alpha: Factor for the values.
        indices_stride: Strides of the indices.
        values_stride: Stride of the values from entry to entry.
        number_stride: Strides that number the rows, per sparse dimension.
        row_shape: Sizes of the sparse dimensions, encoded by `plain`.
        row_stride: Result strides along the sparse dimensions, encoded by `plain`.
        shape: Sizes of the dense dimensions, encoded by `plain`.
        shape_stride: Strides of the values along the dense dimensions, encoded by `plain`.
        out_stride: Result strides along the dense dimensions, encoded by `plain`.
        OWN: Rows per program.
        BLOCK: Entries that they are compared with at once.
    """
    width = 1
    for k in tl.static_range(len(shape)):
        width *= plain_value(shape[k])
    owned = (tl.program_id(0) // width).to(tl.int64) * OWN + tl.arange(0, OWN)
    column = (tl.program_id(0) % width).to(tl.int64) + tl.zeros([1], tl.int64)
    values_ptr += strided(column, shape, shape_stride, False)
    total = widen(tl.zeros([OWN], values_ptr.dtype.element_ty))
    has_entry = owned < 0
    for start in range(0, nnz, BLOCK):
        i = tl.cast(start, tl.int64) + tl.arange(0, BLOCK)
        row = row_offset(indices_ptr, i, i < nnz, indices_stride, number_stride)
        is_owned = (row[None, :] == owned[:, None]) & (i < nnz)[None, :]
        x = widen(tl.load(values_ptr + i * values_stride, mask=i < nnz, other=0))
        total += tl.sum(tl.where(is_owned, x[None, :], 0), 1)
        has_entry |= tl.max(is_owned.to(tl.int32), 1) > 0
    mask = has_entry & (owned < rows)
    out_ptr += strided(owned, row_shape, row_stride, False) + strided(column, shape, out_stride, False)
    result = widen(tl.load(out_ptr, mask=mask, other=0)) + total * alpha
    tl.store(out_ptr, result.to(out_ptr.dtype.element_ty), mask=mask)


def add_sparse(dense, sparse, alpha, out):
    """Return dense + alpha * sparse, in `out` or in a new tensor.

    Raises RuntimeError if the tensors differ in shape, or if both are sparse.
    """
    if dense.is_sparse or dense.shape != sparse.shape:
        raise RuntimeError("expected a dense tensor and a sparse one with the same shape")
    if out is None:
        out = torch.empty(dense.shape, dtype=torch.result_type(dense, sparse), device=dense.device)
    if out is not dense:
        elementwise(identity, dense, common=out.dtype, out=out)
    indices, values = sparse._indices(), sparse._values()
    nnz, dims, width = values.shape[0], indices.shape[0], math.prod(values.shape[1:])
    rows = math.prod(sparse.shape[:dims])
    if values.numel():
        kernel_add_rows[(triton.cdiv(rows, OWNED_SUMS) * width,)](
            indices, values, out, nnz, rows, alpha, indices.stride(), values.stride(0), row_major(sparse.shape[:dims]),
            plains(sparse.shape[:dims]), plains(out.stride()[:dims]), plains(values.shape[1:]),
            plains(values.stride()[1:]), plains(out.stride()[dims:]), OWN=OWNED_SUMS, BLOCK=ENTRIES,
        )  # fmt: skip
    return out
