"""aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor,
    Tensor)

NaN counts as the largest value. The last NaN wins, and otherwise the first among equal values.
"""

from blocks.fractional_pooling import fractional_largest

OVERLOADS = ("aten::fractional_max_pool2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(self, kernel_size, output_size, random_samples):
    return fractional_largest(self, 2, kernel_size, output_size, random_samples)
