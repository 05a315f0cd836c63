"""aten::diag(Tensor self, int diagonal=0) -> Tensor

Of a vector, a square matrix with the vector on one diagonal and zeros elsewhere: a flat grid over the matrix, every
element of which is stored. Of a matrix, one of its diagonals, copied: a flat grid over that diagonal.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::diag",)
DTYPES = ("bfloat16", "float16", "float32", "int32", "int64")


@triton.jit
def kernel_matrix(x_ptr, o_ptr, n, size, diagonal, x_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = i // size
    column = i % size
    inside = i < n
    on_diagonal = inside & (column - row == diagonal)
    x = tl.load(x_ptr + tl.minimum(row, column) * x_stride, mask=on_diagonal, other=0)
    tl.store(o_ptr + i, x, mask=inside)


@triton.jit
def kernel_diagonal(x_ptr, o_ptr, n, first, step, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + first + i * step, mask=i < n)
    tl.store(o_ptr + i, x, mask=i < n)


def wrapper(self, diagonal=0):
    if self.dim() == 1:
        size = self.size(0) + abs(diagonal)
        out = torch.empty((size, size), dtype=self.dtype, device=self.device)
        n = out.numel()
        if n > 0:
            kernel_matrix[(triton.cdiv(n, 1024),)](self, out, n, size, diagonal, self.stride(0), BLOCK=1024)
        return out
    if self.dim() != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.dim()}D")
    row, column = max(-diagonal, 0), max(diagonal, 0)
    n = max(0, min(self.size(0) - row, self.size(1) - column))
    out = torch.empty((n,), dtype=self.dtype, device=self.device)
    if n > 0:
        first = row * self.stride(0) + column * self.stride(1)
        step = self.stride(0) + self.stride(1)
        kernel_diagonal[(triton.cdiv(n, 1024),)](self, out, n, first, step, BLOCK=1024)
    return out
