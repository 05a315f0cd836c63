"""aten::exp(Tensor self) -> Tensor

More shared memory than the target has.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("float32",)


@triton.jit
def kernel_dot(x_ptr, out_ptr):
    i = tl.arange(0, 256)
    a = tl.load(x_ptr + i[:, None] * 256 + i[None, :])
    b = tl.load(x_ptr + i[:, None] + i[None, :] * 256)
    tl.store(out_ptr + i[:, None] * 256 + i[None, :], tl.dot(a, b))


@triton.jit
def kernel_exp(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    big = torch.empty(256, 256, dtype=torch.float16)
    kernel_dot[(1,)](big, torch.empty(256, 256, dtype=torch.float16))
    out = torch.empty_like(self)
    kernel_exp[(triton.cdiv(self.numel(), 64),)](self, out, self.numel(), BLOCK=64)
    return out
