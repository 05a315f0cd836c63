"""aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor
    maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int
    padding_idx=-1) -> Tensor

A program instance takes BLOCK_M items. It reads the gradient rows of their bags, scales them, and adds them
atomically to the table rows at the items' indices. Sums are in fp32 (fp64 for fp64). fp16 and bf16 results
are rounded once, from the final sum.

If offset2bag is empty, an item's bag is located by bisection in the offsets. In mode "max", each gradient
element goes to the table row that won.

A sparse gradient has one row per item in item order, without padding items. If there are padding items, the
row count is read back from the device, because it is a tensor size.

With scale_grad_by_freq, the frequency is the count of the row's own index. ATen's CPU kernel uses another
row's count.
"""

import torch
import triton
import triton.language as tl
from blocks.bag_gradients import add_bag_rows, check_bags, check_items, dense_bag_gradient
from blocks.compaction import coordinates

OVERLOADS = ("aten::_embedding_bag_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")
LAYOUTS = ("sparse_coo", "strided")


@triton.jit
def rows_of_kernel(indices_ptr, items_ptr, out_ptr, n, indices_stride, BLOCK: tl.constexpr):
    """Store the table index of each item as int64.

    Args:
        indices_ptr: [items], table indices, read.
        items_ptr: [n] int64 item numbers, read, or None for items 0 to n - 1.
        out_ptr: [n] int64, written.
        n: Number of table indices to store.
        indices_stride: Stride of the indices, in elements.
        BLOCK: Items per program instance.
    """
    slot = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    item = slot
    if items_ptr is not None:
        item = tl.load(items_ptr + slot, mask=slot < n, other=0)
    tl.store(out_ptr + slot, tl.load(indices_ptr + item * indices_stride, mask=slot < n).to(tl.int64), mask=slot < n)


def sparse_gradient(grad, indices, offsets, offset2bag, bag_size, num_weights, mode, weights, padding_idx):
    items = None if padding_idx == -1 else coordinates(indices, padding_idx)[0]
    n, cols = indices.shape[0] if items is None else items.shape[0], grad.shape[1]
    values = torch.empty((n, cols), dtype=grad.dtype, device=grad.device)
    add_bag_rows(grad, indices, items, offsets, offset2bag, bag_size, weights, None, values, mode, padding_idx, True)
    rows = indices.unsqueeze(0)  # aliased by the result, as in ATen, unless it has to be converted or filtered
    if items is not None or indices.dtype != torch.int64:
        rows = torch.empty((1, n), dtype=torch.int64, device=grad.device)
        rows_of_kernel[(triton.cdiv(n, 1024),)](indices, items, rows, n, indices.stride(0), BLOCK=1024)
    return torch.sparse_coo_tensor(rows, values, (num_weights, cols), check_invariants=False)


def wrapper(
    grad,
    indices,
    offsets,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    padding_idx=-1,
):
    check_items(indices, offsets)
    check_bags(grad, indices, offset2bag, bag_size, maximum_indices, mode, per_sample_weights)
    if sparse:
        if mode == 2 or scale_grad_by_freq:
            raise RuntimeError(
                f"a sparse gradient needs mode 0 (sum) or 1 (mean) and no scaling by frequency, got mode {mode}"
            )
        return sparse_gradient(
            grad, indices, offsets, offset2bag, bag_size, num_weights, mode, per_sample_weights, padding_idx
        )
    return dense_bag_gradient(
        grad,
        indices,
        offsets,
        offset2bag,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )
