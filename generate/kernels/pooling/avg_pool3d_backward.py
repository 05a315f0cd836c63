"""aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool
    ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor

The gradient of an element is gathered from all windows that contain it.
"""

import torch
from blocks.pooling import average_backward

OVERLOADS = ("aten::avg_pool3d_backward",)
DTYPES = ("float32", "float64", "int64")


def wrapper(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    arguments = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return average_backward(grad_output, self, 3, *arguments, torch.contiguous_format)
