"""aten::sparse_mask(Tensor self, Tensor mask) -> Tensor

Reads a dense tensor's elements at the indices of a sparse one. One flat grid computes the new values, and
another one copies the indices.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import identity
from blocks.elementwise import elementwise
from blocks.offsets import strided

OVERLOADS = ("aten::sparse_mask",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
LAYOUTS = ("sparse_coo", "strided")


@triton.jit
def masked_rows_kernel(
    x_ptr, indices_ptr, out_ptr, n, indices_stride, row_stride, shape, column_stride, BLOCK: tl.constexpr
):
    """Read the dense elements for BLOCK new values.

    Args:
        x_ptr: [*sparse dimensions, *shape], read.
        indices_ptr: [sparse dimensions, nnz], read.
        out_ptr: [nnz, *shape], contiguous, written.
        n: Number of elements in the output.
        indices_stride: The two strides of the indices.
        row_stride: Strides of x in the sparse dimensions.
        shape: Sizes of the dense dimensions.
        column_stride: Strides of x in the dense dimensions.
        BLOCK: Elements per program instance.
    """
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = e < n
    width = 1
    for k in tl.static_range(len(shape)):
        width *= shape[k]
    i = e // width
    for k in tl.static_range(len(row_stride)):
        index = tl.load(indices_ptr + k * indices_stride[0] + i * indices_stride[1], mask=mask, other=0)
        x_ptr += index.to(tl.int64) * row_stride[k]
    tl.store(out_ptr + e, tl.load(x_ptr + strided(e % width, shape, column_stride, False, False), mask=mask), mask=mask)


def wrapper(self, mask):
    if self.is_sparse or self.shape != mask.shape:
        raise RuntimeError("expected a dense tensor and a sparse mask with the same shape")
    indices, mask_values = mask._indices(), mask._values()
    dims, n, strides = indices.shape[0], mask_values.numel(), self.stride()
    out_indices = torch.empty_like(indices)
    values = torch.empty(mask_values.shape, dtype=self.dtype, device=self.device)
    elementwise(identity, indices, out=out_indices)
    if n:
        masked_rows_kernel[(triton.cdiv(n, 1024),)](
            self,
            indices,
            values,
            n,
            indices.stride(),
            tuple(strides[:dims]),
            tuple(mask_values.shape[1:]),
            tuple(strides[dims:]),
            BLOCK=1024,
        )
    return torch.sparse_coo_tensor(
        out_indices, values, mask.shape, is_coalesced=mask.is_coalesced(), check_invariants=False
    )
