"""aten::index_select(Tensor self, int dim, Tensor index) -> Tensor

The result is walked through in tiles of rows and columns; its dimensions are merged where the operands' strides allow,
so that only rows are taken apart by division, and the index is loaded once a row where it does not vary within rows.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::index_select",)
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
def kernel_select(
    self_ptr,
    index_ptr,
    out_ptr,
    m,
    n,
    col_blocks,
    step,
    shape,
    self_stride,
    index_stride,
    BY_COL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    row = (tl.program_id(0) // col_blocks).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = (tl.program_id(0) % col_blocks).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (row < m)[:, None] & (col < n)[None, :]
    if BY_COL:
        index = tl.load(index_ptr + col * index_stride[-1], mask=col < n, other=0).to(tl.int64)[None, :]
    else:
        index = tl.load(index_ptr + strided(row, shape, index_stride[:-1]), mask=row < m, other=0).to(tl.int64)[:, None]
    offset = strided(row, shape, self_stride[:-1])[:, None] + col[None, :] * self_stride[-1] + index * step
    x = tl.load(self_ptr + offset, mask=mask)
    tl.store(out_ptr + row[:, None] * n + col[None, :], x, mask=mask)


def collapse(shape, strides):
    """The same walk in as few dimensions as the operands' strides allow: its shape, and strides of each operand."""
    sizes, steps = [], []
    for size, step in zip(shape, zip(*strides, strict=True), strict=True):
        if size == 1:
            continue
        if sizes and all(a == b * size for a, b in zip(steps[-1], step, strict=True)):
            sizes[-1], steps[-1] = sizes[-1] * size, step
        else:
            sizes.append(size)
            steps.append(step)
    if not sizes:
        sizes, steps = [1], [(0,) * len(strides)]
    return tuple(sizes), [tuple(each) for each in zip(*steps, strict=True)]


def tile(m, n):
    """Rows and columns of a program, about 2048 elements, and its warps."""
    BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 1024)
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 2048 // BLOCK_N)
    return BLOCK_M, BLOCK_N, max(1, min(BLOCK_M * BLOCK_N // 256, 8))


def wrapper(self, dim, index):
    if index.dim() == 0:
        index = index.unsqueeze(0)
    if self.dim() == 0 and index.shape[0] != 1:
        raise RuntimeError(f"{index.shape[0]} elements of a tensor without dimensions")
    x = self.unsqueeze(0) if self.dim() == 0 else self
    dim = dim % x.dim()
    shape, stride, chosen = list(x.shape), list(x.stride()), [0] * x.dim()
    shape[dim], stride[dim], chosen[dim] = index.shape[0], 0, index.stride(0)
    out = torch.empty(shape if self.dim() else (), dtype=self.dtype, device=self.device)
    walked, (self_stride, index_stride) = collapse(shape, [stride, chosen])
    m, n = math.prod(walked[:-1]), walked[-1]
    BLOCK_M, BLOCK_N, num_warps = tile(m, n)
    col_blocks = triton.cdiv(n, BLOCK_N)
    kernel_select[(triton.cdiv(m, BLOCK_M) * col_blocks,)](
        x,
        index,
        out,
        m,
        n,
        col_blocks,
        x.stride(dim),
        walked[:-1],
        self_stride,
        index_stride,
        BY_COL=index_stride[-1] != 0,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )
    return out
