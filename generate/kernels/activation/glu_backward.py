"""aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor

One launch computes the gradients for both halves. With s = sigmoid(second half), they are grad * s and grad *
x * s * (1 - s).
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::glu_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def glu_backward(grad, x, gate):
    s = 1 / (1 + tl.exp(-gate))
    return grad * s, grad * x * s * (1 - s)


def wrapper(grad_output, self, dim):
    if self.dim() == 0 or self.shape[dim] % 2:
        raise RuntimeError(f"glu needs an even size along dimension {dim}, got {tuple(self.shape)}")
    half = self.shape[dim] // 2
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    halves = out.narrow(dim, 0, half), out.narrow(dim, half, half)
    elementwise(glu_backward, grad_output, self.narrow(dim, 0, half), self.narrow(dim, half, half), out=halves)
    return out
