"""aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor"""

import triton
from blocks.elementwise import elementwise

OVERLOADS = ("aten::native_dropout_backward",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def dropout_backward(grad, mask, scale):
    return grad * mask * scale


def wrapper(grad_output, mask, scale):
    return elementwise(dropout_backward, grad_output, mask, scale)
