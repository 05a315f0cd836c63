"""aten::exp(Tensor self) -> Tensor

A kernel that never ends, ignoring SIGTERM.
"""

import torch
import triton
import triton.language as tl
import signal

OVERLOADS = ("aten::exp",)
DTYPES = ("float32",)

signal.signal(signal.SIGTERM, signal.SIG_IGN)


@triton.jit
def kernel_exp(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    while n > 0:
        n = n + 1


def wrapper(self):
    out = torch.empty_like(self)
    kernel_exp[(triton.cdiv(self.numel(), 64),)](self, out, self.numel(), BLOCK=64)
    return out
