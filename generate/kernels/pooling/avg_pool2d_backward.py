"""aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool
    ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor

The sum of a window by its size: a gradient is gathered of the windows that have the element.
"""

from blocks.pooling import average_backward
from blocks.windows import suggested_format

OVERLOADS = ("aten::avg_pool2d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int64")


def wrapper(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    how = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return average_backward(grad_output, self, 2, *how, suggested_format(self))
