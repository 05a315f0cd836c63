"""aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)

Window o covers the elements from floor(o * n / count) to ceil((o + 1) * n / count) - 1, with n inputs and
count results per axis.
"""

from blocks.pooling import adaptive_largest

OVERLOADS = ("aten::adaptive_max_pool2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, output_size):
    return adaptive_largest(self, 2, output_size)
