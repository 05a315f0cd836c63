"""aten::exp(Tensor self) -> Tensor

Launches blocks of another size where kernels only compile.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("float32",)


@triton.jit
def kernel_exp(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    out = torch.empty_like(self)
    block = 64 if type(kernel_exp).__name__ == "InterpretedFunction" else 128
    kernel_exp[(triton.cdiv(self.numel(), block),)](self, out, self.numel(), BLOCK=block)
    return out
