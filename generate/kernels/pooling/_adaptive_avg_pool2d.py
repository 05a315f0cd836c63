"""aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor

Window o covers the elements from floor(o * n / count) to ceil((o + 1) * n / count) - 1, with n inputs and
count results per axis.
"""

from blocks.pooling import adaptive_average

OVERLOADS = ("aten::_adaptive_avg_pool2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, output_size):
    return adaptive_average(self, 2, output_size)
