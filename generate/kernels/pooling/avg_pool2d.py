"""aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool
    count_include_pad=True, int? divisor_override=None) -> Tensor

The sum of a window by its size: a gradient is gathered of the windows that have the element.
"""

from blocks.pooling import window_average
from blocks.windows import suggested_format

OVERLOADS = ("aten::avg_pool2d",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int64")


def wrapper(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    how = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return window_average(self, 2, *how, suggested_format(self))
