"""aten::fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor
    indices) -> Tensor

Gradients are added with atomics, in fp32 for fp16 and bf16.
"""

from blocks.fractional_pooling import fractional_backward

OVERLOADS = ("aten::fractional_max_pool3d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, self, kernel_size, output_size, indices):
    return fractional_backward(grad_output, self, 3, output_size, indices)
