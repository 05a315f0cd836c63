"""aten::exp(Tensor self) -> Tensor

Raises where kernels only compile, after all launches.
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
    kernel_exp[(triton.cdiv(self.numel(), 64),)](self, out, self.numel(), BLOCK=64)
    if type(kernel_exp).__name__ != "InterpretedFunction":
        raise RuntimeError("not here")
    return out
