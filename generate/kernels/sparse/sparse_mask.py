"""aten::sparse_mask(Tensor self, Tensor mask) -> Tensor

The elements of a dense tensor at the indices of a sparse one: one flat grid over the new values, one over a copy of the
indices.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::sparse_mask",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
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
def kernel_copy_indices(indices_ptr, out_ptr, n, shape, stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    index = tl.load(indices_ptr + strided(i, shape, stride), mask=mask)
    tl.store(out_ptr + strided(i, shape, out_stride), index, mask=mask)


@triton.jit
def kernel_gather_rows(
    x_ptr, indices_ptr, out_ptr, n, indices_stride, row_stride, shape, column_stride, BLOCK: tl.constexpr
):
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = e < n
    width = 1
    for k in tl.static_range(len(shape)):
        width *= shape[k]
    i = e // width
    for k in tl.static_range(len(row_stride)):
        index = tl.load(indices_ptr + k * indices_stride[0] + i * indices_stride[1], mask=mask, other=0)
        x_ptr += index.to(tl.int64) * row_stride[k]
    tl.store(out_ptr + e, tl.load(x_ptr + strided(e % width, shape, column_stride), mask=mask), mask=mask)


def wrapper(self, mask):
    if self.is_sparse or self.shape != mask.shape:
        raise RuntimeError("a dense tensor is masked by a sparse one of its own shape")
    indices, given = mask._indices(), mask._values()
    dims, n, strides = indices.shape[0], given.numel(), self.stride()
    kept = torch.empty_like(indices)
    values = torch.empty(given.shape, dtype=self.dtype, device=self.device)
    if indices.numel():
        kernel_copy_indices[(triton.cdiv(indices.numel(), 1024),)](
            indices, kept, indices.numel(), tuple(indices.shape), indices.stride(), kept.stride(), BLOCK=1024
        )
    if n:
        kernel_gather_rows[(triton.cdiv(n, 1024),)](
            self,
            indices,
            values,
            n,
            indices.stride(),
            tuple(strides[:dims]),
            tuple(given.shape[1:]),
            tuple(strides[dims:]),
            BLOCK=1024,
        )
    return torch.sparse_coo_tensor(kept, values, mask.shape, is_coalesced=mask.is_coalesced(), check_invariants=False)
