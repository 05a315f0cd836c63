"""aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor

Behind the edge elements are mirrored at it; gradients are gathered of up to three places.
"""

from blocks.padding import pad_backward

OVERLOADS = ("aten::reflection_pad1d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, self, padding):
    return pad_backward(grad_output, self, 1, padding, True)
