"""aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor?
    running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor,
    Tensor, Tensor)

With xhat = (x - mean) * rstd:

- grad_weight = sum(grad * xhat), and grad_bias = sum(grad).
- In training, grad_input = weight * rstd * (grad - mean(grad) - xhat * mean(grad * xhat)).
- With running statistics, grad_input = weight * rstd * grad.
"""

from blocks.normalization import batch_norm_gradients

OVERLOADS = ("aten::native_batch_norm_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask):
    statistics = (running_mean, running_var), (save_mean, save_invstd)
    return batch_norm_gradients(grad_out, input, weight, *statistics, train, eps, output_mask)
