"""aten::replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor

Elements beyond an edge repeat the element at that edge. The gradient of an element is gathered from all
positions that it was copied to.
"""

from blocks.padding import pad_backward

OVERLOADS = ("aten::replication_pad3d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(grad_output, self, padding):
    return pad_backward(grad_output, self, 3, padding, False)
