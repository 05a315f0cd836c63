"""aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor
    running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)

Normalizes with the running statistics.
"""

from blocks.normalization import batch_norm

OVERLOADS = ("aten::_native_batch_norm_legit_no_training",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, weight, bias, running_mean, running_var, momentum, eps):
    return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
