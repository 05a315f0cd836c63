"""aten::batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var,
    Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor,
    Tensor, Tensor)

Computes the same as aten::native_batch_norm_backward. save_var is the inverse standard deviation, and
`reserve` is not read.
"""

from blocks.normalization import batch_norm_gradients

OVERLOADS = ("aten::batch_norm_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(
    grad_out,
    input,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_var,
    update,
    eps,
    output_mask,
    reserve,
):
    statistics = (running_mean, running_var), (save_mean, save_var)
    return batch_norm_gradients(grad_out, input, weight, *statistics, update, eps, output_mask)
