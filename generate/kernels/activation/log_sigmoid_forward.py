"""aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)

Returns min(x, 0) - log(1 + e^-|x|), and e^-|x| as the buffer for the backward pass.
"""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.functions import log1p

OVERLOADS = ("aten::log_sigmoid_forward",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def log_sigmoid(x):
    e = tl.exp(-tl.abs(x))
    return tl.where(x < 0, x, 0.0) - log1p(e), e


def wrapper(self):
    outs = [torch.empty(self.shape, dtype=self.dtype, device=self.device) for _ in range(2)]
    return elementwise(log_sigmoid, self, out=tuple(outs))
