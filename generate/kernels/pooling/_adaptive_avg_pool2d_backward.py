"""aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor

Window o covers the elements from floor(o * n / count) to ceil((o + 1) * n / count) - 1, with n inputs and
count results per axis. Gradients are gathered, without atomics.
"""

from blocks.pooling import adaptive_average_backward

OVERLOADS = ("aten::_adaptive_avg_pool2d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, self):
    return adaptive_average_backward(grad_output, self, 2)
