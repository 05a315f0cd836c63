"""aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor
    offset2bag, int mode, int padding_idx=-1) -> Tensor

For each item, the result is the dot product of its bag's gradient row and its index's weight row, in fp32
(fp64 for fp64). It is 0 for padding items and for indices out of range. If offset2bag is empty, an item's bag
is located by bisection in the offsets.
"""

import torch
import triton
import triton.language as tl
from blocks.bag_gradients import bag_of, bag_tile, bisection_levels, check_items
from blocks.types import compute_types, identical_dtypes

OVERLOADS = ("aten::_embedding_bag_per_sample_weights_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def bag_products_kernel(
    grad_ptr,
    weight_ptr,
    indices_ptr,
    offsets_ptr,
    offset2bag_ptr,
    out_ptr,
    m,
    cols,
    height,
    padding_idx,
    bags,
    grad_stride,
    weight_stride,
    indices_stride,
    offsets_stride,
    offset2bag_stride,
    OPMATH: tl.constexpr,
    LEVELS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute the dot products for BLOCK_M items per program instance, BLOCK_N columns at a time.

    Args:
        grad_ptr: [bags, cols], read.
        weight_ptr: [height, cols], read.
        indices_ptr: [m], read.
        offsets_ptr: [bags], read if offset2bag_ptr is None.
        offset2bag_ptr: [m], read, or None.
        out_ptr: [m], contiguous, written.
        m: Number of items.
        cols: Number of columns.
        height: Number of rows of the table.
        padding_idx: Index whose items get 0.
        bags: Number of bags.
        grad_stride: (row, column) stride of the gradient.
        weight_stride: (row, column) stride of the table.
        indices_stride: Stride of the indices.
        offsets_stride: Stride of the offsets.
        offset2bag_stride: Stride of offset2bag.
        OPMATH: Type in which products are added up.
        LEVELS: Bisection steps that `bag_of` needs for this many bags.
        BLOCK_M: Items per program.
        BLOCK_N: Columns per step.
    """
    item = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = item < m
    index = tl.load(indices_ptr + item * indices_stride, mask=inside, other=0).to(tl.int64)
    used = inside & (index != padding_idx) & (index >= 0) & (index < height)
    bag = bag_of(item, offset2bag_ptr, offset2bag_stride, offsets_ptr, offsets_stride, bags, inside, LEVELS)
    acc = tl.zeros([BLOCK_M, BLOCK_N], OPMATH)
    for start in range(0, cols, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = used[:, None] & (col < cols)[None, :]
        grad = tl.load(grad_ptr + bag[:, None] * grad_stride[0] + col[None, :] * grad_stride[1], mask=mask, other=0)
        row = tl.load(
            weight_ptr + index[:, None] * weight_stride[0] + col[None, :] * weight_stride[1], mask=mask, other=0
        )
        acc += grad.to(OPMATH) * row.to(OPMATH)
    tl.store(out_ptr + item, tl.sum(acc, 1).to(out_ptr.dtype.element_ty), mask=inside)


def wrapper(grad, weight, indices, offsets, offset2bag, mode, padding_idx=-1):
    identical_dtypes(grad, weight)
    check_items(indices)
    if offsets.dtype not in (torch.int32, torch.int64):
        raise RuntimeError(f"offsets must be int32 or int64, got {offsets.dtype}")
    if mode != 0:
        raise RuntimeError(f"per-sample weights need mode 0 (sum), got {mode}")
    m, cols = indices.shape[0], grad.shape[1]
    if 0 < offset2bag.shape[0] < m:
        raise RuntimeError(f"offset2bag has {offset2bag.shape[0]} entries for {m} items")
    out = torch.empty(m, dtype=grad.dtype, device=grad.device)
    bags = min(offsets.shape[0], grad.shape[0])
    BLOCK_M, BLOCK_N, num_warps = bag_tile(m, cols)
    bag_products_kernel[(triton.cdiv(m, BLOCK_M),)](
        grad,
        weight,
        indices,
        offsets,
        offset2bag if offset2bag.shape[0] else None,
        out,
        m,
        cols,
        weight.shape[0],
        padding_idx,
        bags,
        grad.stride(),
        weight.stride(),
        indices.stride(0),
        offsets.stride(0),
        offset2bag.stride(0),
        OPMATH=compute_types(grad.dtype)[1],
        LEVELS=bisection_levels(bags),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )
    return out
