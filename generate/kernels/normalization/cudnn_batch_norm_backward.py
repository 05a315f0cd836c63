"""aten::cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? running_mean, Tensor?
    running_var, Tensor? save_mean, Tensor? save_var, float epsilon, Tensor reserveSpace) -> (Tensor, Tensor, Tensor)

Computes the same as aten::native_batch_norm_backward in training. save_var is the inverse standard deviation,
and reserveSpace is not read.
"""

from blocks.normalization import batch_norm_gradients

OVERLOADS = ("aten::cudnn_batch_norm_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, reserveSpace):
    statistics = (running_mean, running_var), (save_mean, save_var)
    return batch_norm_gradients(grad_output, input, weight, *statistics, True, epsilon, (True, True, True))
