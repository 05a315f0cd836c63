"""Smallest kernel file, used to check that a process can compile and launch."""

KERNEL = '''\
"""aten::neg(Tensor self) -> Tensor

One flat grid over a contiguous tensor.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::neg",)
DTYPES = ("float32",)


@triton.jit
def kernel_neg(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(self):
    out = torch.empty_like(self)
    kernel_neg[(triton.cdiv(self.numel(), 64),)](self, out, self.numel(), BLOCK=64)
    return out
'''
