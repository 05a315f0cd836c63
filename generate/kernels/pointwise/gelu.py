"""aten::gelu(Tensor self, *, str approximate="none") -> Tensor

Computes x * Phi(x). 'tanh' (arXiv:1606.08415) replaces Phi(x) by 0.5 * (1 + tanh(u)) = sigmoid(2u), with u =
sqrt(2/pi) * (x + 0.044715 * x^3).
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.error_functions import normal_distribution

OVERLOADS = ("aten::gelu",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_16_bits(x):
    distribution, _ = normal_distribution(x)
    return x * distribution


@triton.jit
def gelu_tanh(x):
    return x / (1 + tl.exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)))


def wrapper(self, *, approximate="none", out=None):
    exact = gelu_16_bits if self.element_size() == 2 else gelu
    return elementwise(gelu_tanh if approximate == "tanh" else exact, self, out=out)
