"""aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none") -> Tensor

Computes grad * (Phi(x) + x * phi(x)). 'tanh' differentiates x * s with s = sigmoid(2u) and u = sqrt(2/pi) *
(x + 0.044715 * x^3). The derivative is s + 2 * x * s * (1 - s) * u'.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.error_functions import normal_distribution

OVERLOADS = ("aten::gelu_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def gelu_backward(grad, x):
    return grad * (0.5 * (1 + tl.erf(x * 0.7071067811865476)) + x * 0.3989422804014327 * tl.exp(-0.5 * x * x))


@triton.jit
def gelu_backward_16_bits(grad, x):
    distribution, power = normal_distribution(x)
    return grad * (distribution + x * 0.3989422804014327 * power)


@triton.jit
def gelu_tanh_backward(grad, x):
    u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    s = 1 / (1 + tl.exp(-2 * u))
    return grad * (s + 2 * x * s * (1 - s) * 0.7978845608028654 * (1 + 0.134145 * x * x))


def wrapper(grad_output, self, *, approximate="none", out=None):
    exact = gelu_backward_16_bits if grad_output.element_size() == 2 else gelu_backward
    return elementwise(gelu_tanh_backward if approximate == "tanh" else exact, grad_output, self, out=out)
