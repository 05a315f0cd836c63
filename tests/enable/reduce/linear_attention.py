"""Gated products of rows: a running sum of gates times a matrix product of the rows."""

# op: aten::mm
import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    """Add two blocks."""
    return a + b


@triton.jit
def unused(a, b):
    return a * b


@triton.jit
def products(
    q_ptr, k_ptr, out_ptr, rows, columns, depth, GATED: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr
):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, depth, DEPTH):
        inner = start + tl.arange(0, DEPTH)
        q_mask = (row[:, None] < rows) & (inner[None, :] < depth)
        q = tl.load(q_ptr + row[:, None] * depth + inner[None, :], mask=q_mask, other=0.0)
        k_mask = (inner[:, None] < depth) & (column[None, :] < columns)
        k = tl.load(k_ptr + inner[:, None] * columns + column[None, :], mask=k_mask, other=0.0)
        total = add(total, tl.dot(q, k, input_precision="ieee"))
    if GATED:
        gate = tl.load(q_ptr + row * depth, mask=row < rows, other=0.0)
        decay = tl.cumsum(gate[:, None], axis=0)
        total = decay * total
        total = tl.where(row[:, None] >= column[None, :], total, 0.0)
    else:
        total = total * 1.0
    out_mask = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(out_ptr + row[:, None] * columns + column[None, :], total, mask=out_mask)


def wrapper(self, other):
    rows, depth = self.shape[-2], self.shape[-1]
    columns = other.shape[-1]
    q = self.contiguous()
    k = other.contiguous()
    out = torch.empty((rows, columns), dtype=self.dtype, device=self.device)
    grid = (triton.cdiv(rows, 32), triton.cdiv(columns, 32))
    products[grid](q, k, out, rows, columns, depth, GATED=True, BLOCK=32, DEPTH=16, num_warps=4, num_stages=3)
    return out
