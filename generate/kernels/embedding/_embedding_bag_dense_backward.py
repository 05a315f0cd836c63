"""aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor
    maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int
    padding_idx=-1) -> Tensor

A program takes BLOCK_M items: reads their bags' gradient rows, scales them, and adds them to the rows of the items'
indices by atomics in fp32 (fp64 for fp64); half precision is rounded from fp32 sums at the end. The maximum's gradient
goes to the row that won, element by element.
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
