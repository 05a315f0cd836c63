"""aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor

Elements beyond an edge mirror the input at that edge. The gradient of an element is gathered from up to three
positions.
"""

from blocks.padding import pad_backward

OVERLOADS = ("aten::reflection_pad1d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, self, padding):
    return pad_backward(grad_output, self, 1, padding, True)
