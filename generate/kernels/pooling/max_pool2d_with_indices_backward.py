"""aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2]
    padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor

The gradient of an element is gathered from the windows that contain it. NaN counts as the largest value, and
the first among equal elements wins.
"""

from blocks.pooling import largest_backward

OVERLOADS = ("aten::max_pool2d_with_indices_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    return largest_backward(grad_output, self, 2, kernel_size, stride, padding, dilation, ceil_mode, indices)
