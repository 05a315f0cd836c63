"""aten::exp(Tensor self) -> Tensor

More shared memory than the target has.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("float32",)


@triton.jit
def kernel_dot(x_ptr, out_ptr, n):
    i = tl.arange(0, 64)
    tile = i[:, None] * 64 + i[None, :]
    sums = tl.zeros((64, 64), tl.float32)
    for k in range(n):
        sums += tl.dot(tl.load(x_ptr + k * 4096 + tile), tl.load(x_ptr + k * 4096 + tile))
    tl.store(out_ptr + tile, sums)


@triton.jit
def kernel_exp(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    big = torch.empty(32, 64, 64, dtype=torch.float16)
    kernel_dot[(1,)](big, torch.empty(64, 64, dtype=torch.float32), 32, num_stages=32)
    out = torch.empty_like(self)
    kernel_exp[(triton.cdiv(self.numel(), 64),)](self, out, self.numel(), BLOCK=64)
    return out
