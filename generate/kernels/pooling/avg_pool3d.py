"""aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool
    count_include_pad=True, int? divisor_override=None) -> Tensor

The result is the sum over a window, divided by its size.
"""

import torch
from blocks.pooling import window_average

OVERLOADS = ("aten::avg_pool3d",)
DTYPES = ("float32", "float64", "int64")


def wrapper(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    arguments = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return window_average(self, 3, *arguments, torch.contiguous_format)
