"""aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor
    offset2bag, int mode, int padding_idx=-1) -> Tensor

For each item the scalar product, in fp32 (fp64 for fp64), of its bag's gradient row and its index's weight row; 0 for
padding. A program takes BLOCK_M items. Where the bags were not recorded they are found by bisection among the offsets.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_embedding_bag_per_sample_weights_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def wide(x):
    """The type to compute in: fp64 for fp64, fp32 for all else."""
    return x if x.dtype.is_fp64() else x.to(tl.float32)


@triton.jit
def bag_of(item, offset2bag_ptr, offsets_ptr, offsets_stride, bags, mask, LEVELS: tl.constexpr):
    """The bag of each item: as recorded, or else the last bag whose offset is not greater, by bisection."""
    if offset2bag_ptr is not None:
        return tl.load(offset2bag_ptr + item, mask=mask, other=0).to(tl.int64)
    bag = tl.zeros_like(item)
    for level in tl.static_range(LEVELS - 1, -1, -1):
        further = bag + (1 << level)
        known = mask & (further < bags)
        offset = tl.load(offsets_ptr + further * offsets_stride, mask=known, other=0)
        bag = tl.where(known & (offset <= item), further, bag)
    return bag


@triton.jit
def kernel_products(
    grad_ptr,
    weight_ptr,
    indices_ptr,
    offsets_ptr,
    offset2bag_ptr,
    out_ptr,
    m,
    cols,
    padding_idx,
    bags,
    grad_stride,
    weight_stride,
    indices_stride,
    offsets_stride,
    LEVELS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    item = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    inside = item < m
    index = tl.load(indices_ptr + item * indices_stride, mask=inside, other=0).to(tl.int64)
    used = inside & (index != padding_idx)
    bag = bag_of(item, offset2bag_ptr, offsets_ptr, offsets_stride, bags, inside, LEVELS)
    acc = wide(tl.zeros([BLOCK_M, BLOCK_N], grad_ptr.dtype.element_ty))
    for start in range(0, cols, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = used[:, None] & (col < cols)[None, :]
        grad = tl.load(grad_ptr + bag[:, None] * grad_stride[0] + col[None, :] * grad_stride[1], mask=mask, other=0)
        row = tl.load(
            weight_ptr + index[:, None] * weight_stride[0] + col[None, :] * weight_stride[1], mask=mask, other=0
        )
        acc += wide(grad) * wide(row)
    tl.store(out_ptr + item, tl.sum(acc, 1).to(out_ptr.dtype.element_ty), mask=inside)


def levels(bags):
    """Steps of a bisection among this many offsets."""
    return math.ceil(math.log2(max(bags, 2)))


def tile(m, cols):
    """Items and columns of a program, and its warps: about 2048 elements, fewer where few items would leave it idle."""
    BLOCK_N = min(triton.next_power_of_2(max(cols, 1)), 256)
    BLOCK_M = min(2048 // BLOCK_N, triton.next_power_of_2(max(m // 512, 1)))
    return BLOCK_M, BLOCK_N, max(1, min(BLOCK_M * BLOCK_N // 256, 8))


def wrapper(grad, weight, indices, offsets, offset2bag, mode, padding_idx=-1):
    m, cols = indices.shape[0], grad.shape[1]
    if offset2bag.shape[0] not in (0, m):
        raise RuntimeError(f"bags of {offset2bag.shape[0]} of {m} items")
    out = torch.empty(m, dtype=grad.dtype, device=grad.device)
    bags = min(offsets.shape[0], grad.shape[0])
    BLOCK_M, BLOCK_N, num_warps = tile(m, cols)
    kernel_products[(triton.cdiv(m, BLOCK_M),)](
        grad,
        weight,
        indices,
        offsets,
        offset2bag if offset2bag.shape[0] else None,
        out,
        m,
        cols,
        padding_idx,
        bags,
        grad.stride(),
        weight.stride(),
        indices.stride(0),
        offsets.stride(0),
        LEVELS=levels(bags),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )
    return out
