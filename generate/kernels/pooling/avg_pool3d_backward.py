"""aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool
    ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor

The sum of a window by its size: a gradient is gathered of the windows that have the element.
"""

import torch
from blocks.pooling import average_backward

OVERLOADS = ("aten::avg_pool3d_backward",)
DTYPES = ("float32", "float64", "int64")


def wrapper(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    how = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return average_backward(grad_output, self, 3, *how, torch.contiguous_format)
