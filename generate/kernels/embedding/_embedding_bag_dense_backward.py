"""aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor
    maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int
    padding_idx=-1) -> Tensor

A program instance takes BLOCK_M items. It reads the gradient rows of their bags, scales them, and adds them
atomically to the table rows at the items' indices. Sums are in fp32 (fp64 for fp64). fp16 and bf16 results
are rounded once, from the final sum. In mode "max", each gradient element goes to the table row that won.
"""

from blocks.bag_gradients import check_bags, dense_bag_gradient

OVERLOADS = ("aten::_embedding_bag_dense_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(
    grad,
    indices,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    per_sample_weights,
    padding_idx=-1,
):
    check_bags(grad, indices, offset2bag, bag_size, maximum_indices, mode, per_sample_weights)
    return dense_bag_gradient(
        grad,
        indices,
        None,
        offset2bag,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )
