"""aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!)
    running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
    training, float momentum, float eps) -> (Tensor, Tensor, Tensor)

Each channel's statistics are combined as a mean and squared deviations from it. Running statistics are
updated in place.
"""

from blocks.normalization import batch_norm

OVERLOADS = ("aten::_native_batch_norm_legit", "aten::native_batch_norm")
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, weight, bias, running_mean, running_var, training, momentum, eps):
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
