"""aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2]
    dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)

NaN is the window_largest; of equals the first counts. A gradient is gathered of the windows that have the element.
"""

from blocks.pooling import window_largest

OVERLOADS = ("aten::max_pool2d_with_indices",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    return window_largest(self, 2, kernel_size, stride, padding, dilation, ceil_mode)
