"""aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor

One flat grid over the output. The other operand is a tensor or a Python number; floating point is computed in fp32,
integers and bools in int64, and the result is cast to the type that ATen promotes to.

Rows of a sparse operand, which may be there several times, are added to a copy of the dense one by atomics. Types that
have none, or too few bits to add up in, first get the sum of each row in fp32 or int64 at the row's first entry.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::add.Tensor", "aten::add.Scalar")
DTYPES = ("bfloat16", "bool", "float16", "float32", "int16", "int32", "int64", "int8", "uint8")
LAYOUTS = ("sparse_coo", "strided")


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
    """The type to compute in: fp32 for floating point, int64 for integers and bools."""
    return x.to(tl.float32) if x.dtype.is_floating() else x.to(tl.int64)


@triton.jit
def kernel_add(
    x_ptr, y, out_ptr, n, alpha, shape, x_stride, y_stride, out_stride, Y_IS_TENSOR: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = widen(tl.load(x_ptr + strided(i, shape, x_stride), mask=mask))
    if Y_IS_TENSOR:
        y = widen(tl.load(y + strided(i, shape, y_stride), mask=mask)) * alpha
    out = x + y
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(out_ptr.dtype.element_ty), mask=mask)


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
def kernel_zero(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.zeros([BLOCK], out_ptr.dtype.element_ty), mask=i < n)


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
        width *= shape[k]
    i, column = e // width, e % width
    offset = row_offset(indices_ptr, i, mask, indices_stride, row_stride)
    if first_ptr is not None:
        offset = tl.load(first_ptr + offset, mask=mask, other=0) * width
    value = tl.load(values_ptr + i * values_stride + strided(column, shape, shape_stride), mask=mask, other=0)
    value = (widen(value) * alpha).to(out_ptr.dtype.element_ty)
    tl.atomic_add(out_ptr + offset + strided(column, shape, out_stride), value, mask=mask, sem="relaxed")


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
        width *= shape[k]
    i = e // width
    mask &= (
        tl.load(first_ptr + row_offset(indices_ptr, i, mask, indices_stride, claim_stride), mask=mask, other=-1) == i
    )
    out_ptr += row_offset(indices_ptr, i, mask, indices_stride, row_stride) + strided(e % width, shape, out_stride)
    total = widen(tl.load(out_ptr, mask=mask)) + tl.load(sums_ptr + e, mask=mask)
    tl.store(out_ptr, total.to(out_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def empty_broadcast(tensors, dtype):
    """New tensor of the broadcast shape, its dimensions in memory ordered as the operands' (TensorIterator's rule)."""
    shape = tensors[0].shape
    order = list(range(len(shape)))[::-1]  # fastest dimension first
    for i in range(1, len(order)):
        k = i
        for j in range(i - 1, -1, -1):
            sign = stride_order(tensors, order[j], order[k])
            if sign < 0:
                break
            if sign > 0:
                order[j], order[k], k = order[k], order[j], j
    out = torch.empty([shape[d] for d in order[::-1]], dtype=dtype, device=tensors[0].device)
    return out.permute([order[::-1].index(d) for d in range(len(shape))])


def stride_order(tensors, a, b):
    """Positive where dimension a has to lie outside b, negative where inside, 0 where no operand tells."""
    for t in tensors:
        if t.stride(a) == 0 or t.stride(b) == 0:
            continue
        if t.stride(a) != t.stride(b):
            return t.stride(a) - t.stride(b)
        if t.shape[a] > t.shape[b]:
            return 1
    return 0


def row_major(shape):
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def add_sparse(dense, sparse, alpha, out):
    if dense.is_sparse or dense.shape != sparse.shape:
        raise RuntimeError("a sparse tensor is added to a dense one of its own shape")
    if out is None:
        out = torch.empty(dense.shape, dtype=torch.result_type(dense, sparse), device=dense.device)
    if out is not dense:
        wrapper(dense, 0, out=out)
    indices, values = sparse._indices(), sparse._values()
    nnz, dims, n = values.shape[0], indices.shape[0], values.numel()
    shape, strides = tuple(values.shape[1:]), out.stride()
    if not n:
        return out
    grid = (triton.cdiv(n, 1024),)
    entries = values.stride(0), tuple(strides[:dims]), shape, values.stride()[1:]
    if out.dtype in (torch.float32, torch.int32, torch.int64):
        kernel_add_rows[grid](
            indices, values, out, None, n, alpha, indices.stride(), *entries, tuple(strides[dims:]), BLOCK=1024
        )
        return out
    claim = tuple(row_major(sparse.shape[:dims]))
    first = torch.empty(math.prod(sparse.shape[:dims]), dtype=torch.int64, device=out.device)
    sums = torch.empty(n, dtype=torch.float32 if out.is_floating_point() else torch.int64, device=out.device)
    kernel_zero[grid](sums, n, BLOCK=1024)
    for mark in (True, False):
        kernel_claim[(triton.cdiv(nnz, 256),)](indices, first, nnz, indices.stride(), claim, MARK=mark, BLOCK=256)
    own = values.stride(0), claim, shape, values.stride()[1:], tuple(row_major(shape))
    kernel_add_rows[grid](indices, values, sums, first, n, alpha, indices.stride(), *own, BLOCK=1024)
    kernel_store_rows[grid](
        indices,
        sums,
        first,
        out,
        n,
        indices.stride(),
        claim,
        tuple(strides[:dims]),
        shape,
        tuple(strides[dims:]),
        BLOCK=1024,
    )
    return out


def wrapper(self, other, alpha=1, *, out=None):
    is_tensor = isinstance(other, torch.Tensor)
    if self.is_sparse or (is_tensor and other.is_sparse):
        return add_sparse(self, other, alpha, out)
    tensors = torch.broadcast_tensors(self, other) if is_tensor else (self,)
    if out is None:
        out = empty_broadcast(tensors, torch.result_type(self, other))
    n = out.numel()
    y = tensors[-1] if is_tensor else other * alpha
    shape, strides = walk(*tensors, out)
    kernel_add[(triton.cdiv(n, 4096),)](
        tensors[0],
        y,
        out,
        n,
        alpha,
        shape,
        strides[0],
        strides[-2],
        strides[-1],
        Y_IS_TENSOR=is_tensor,
        BLOCK=4096,
        num_warps=8,
    )
    return out
