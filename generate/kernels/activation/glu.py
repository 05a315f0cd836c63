"""aten::glu(Tensor self, int dim=-1) -> Tensor

The result is the first half along dim, multiplied by the sigmoid of the second half.
"""

import triton
import triton.language as tl
from blocks.elementwise import elementwise

OVERLOADS = ("aten::glu",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def glu(x, gate):
    return x / (1 + tl.exp(-gate))


def wrapper(self, dim=-1, *, out=None):
    if self.dim() == 0 or self.shape[dim] % 2:
        raise RuntimeError(f"glu needs an even size along dimension {dim}, got {tuple(self.shape)}")
    half = self.shape[dim] // 2
    return elementwise(glu, self.narrow(dim, 0, half), self.narrow(dim, half, half), out=out)
