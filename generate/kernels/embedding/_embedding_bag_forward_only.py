"""aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int
    mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) ->
    (Tensor, Tensor, Tensor, Tensor)

In mode 0 (sum), no sizes are recorded: bag_size and maximum_indices are 0, as in ATen on the CPU. Both have
one element per offset.
"""

from blocks.bags import embedding_bags

OVERLOADS = ("aten::_embedding_bag_forward_only",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=-1,
):
    sizes = offsets.shape[0] if mode == 0 else None
    return embedding_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, sizes)
