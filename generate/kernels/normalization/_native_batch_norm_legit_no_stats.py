"""aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum,
    float eps) -> (Tensor, Tensor, Tensor)

Normalizes with the batch's own statistics per channel. There are no running statistics.
"""

from blocks.normalization import batch_norm

OVERLOADS = ("aten::_native_batch_norm_legit.no_stats",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(input, weight, bias, training, momentum, eps):
    if not training:
        raise RuntimeError("training must be True: running statistics are not passed")
    return batch_norm(input, weight, bias, None, None, True, momentum, eps)
