"""aten::tril(Tensor self, SymInt diagonal=0) -> Tensor

One flat grid over the output: an element whose column lies more than `diagonal` right of its row is zero, and its input
is not read.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::tril",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


@triton.jit
def kernel_tril(x_ptr, out_ptr, n, rows, columns, diagonal, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    kept = i % columns - i // columns % rows <= diagonal
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask & kept, other=0)
    tl.store(out_ptr + strided(i, shape, out_stride), x, mask=mask)


def wrapper(self, diagonal=0, *, out=None):
    if out is None:
        out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    n = out.numel()
    rows, columns = self.shape[-2:]
    kernel_tril[(triton.cdiv(n, 4096),)](
        self,
        out,
        n,
        rows,
        columns,
        diagonal,
        tuple(self.shape),
        self.stride(),
        out.stride(),
        BLOCK=4096,
        num_warps=8,
    )
    return out
