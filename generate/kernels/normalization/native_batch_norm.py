"""aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
    training, float momentum, float eps) -> (Tensor, Tensor, Tensor)

As aten::_native_batch_norm_legit, with running statistics or without.
"""

from blocks.normalization import batch_norm

OVERLOADS = ("aten::native_batch_norm",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
