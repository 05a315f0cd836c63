"""Kernel files that several tests judge, whole or with a fault."""

NEG = '''"""aten::neg(Tensor self) -> Tensor

Pointwise.
"""
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::neg",)
DTYPES = ("float32",)


@triton.jit
def kernel_neg(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(y_ptr + i, -x, mask=mask)


def wrapper(self):
    y = torch.empty_like(self)
    n = self.numel()
    kernel_neg[(triton.cdiv(n, 64),)](self, y, n, BLOCK=64)
    return y
'''
SOFTMAX = '''"""aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor

exp(x) / sum(exp(x)), each by an operator of the library.
"""
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_softmax",)
DTYPES = ("float32",)


def wrapper(self, dim, half_to_float):
    e = torch.ops.aten.exp.default(self)
    return torch.ops.aten.div.Tensor(e, torch.ops.aten.sum.dim_IntList(e, [dim], True))
'''
