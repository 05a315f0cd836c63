"""aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3]
    dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)

NaN counts as the largest value, and the first among equal elements wins.
"""

from blocks.pooling import window_largest

OVERLOADS = ("aten::max_pool3d_with_indices",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    return window_largest(self, 3, kernel_size, stride, padding, dilation, ceil_mode)
