"""aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor

Each tensor is split along dim into chunks, and the last chunk is padded with zeros. A launch joins up to 32
tensors. A program instance looks its tensor up once for BLOCK elements. If 16 divides all widths, the kernel
is compiled with that knowledge and moves 16 bytes at a time.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.copies import copied
from blocks.elementwise import pick
from blocks.limits import MAX_GRID_YZ
from blocks.offsets import plain, plain_value

OVERLOADS = ("aten::_chunk_cat",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")

LARGE_RESULT = 4194304  # elements from which tiles of 8,192 elements still give each processor several programs


@triton.jit
def length_of(lengths, firsts, UNIT: tl.constexpr):
    return plain_value(pick(lengths, firsts)).to(tl.int64) * UNIT


@triton.jit
def chunk_cat_kernel(
    xs, out_ptr, firsts, sizes, widths, starts, rows, chunks, total, UNIT: tl.constexpr, BLOCK: tl.constexpr
):
    """Copy BLOCK elements from one chunk of one tensor to the result.

    Args:
        xs: Tuple of contiguous tensors, [rows, size], read.
        out_ptr: [rows, chunks, total], contiguous, written.
        firsts: Tuple with the first program_id(0) of each tensor, encoded by `plain`.
        sizes: Tuple with each tensor's elements per row.
        widths: Tuple with each tensor's chunk width, in elements.
        starts: Tuple with each tensor's offset in a chunk of the result, in elements.
        rows: Number of rows, encoded by `plain`; program_id(1) and program_id(2) together index them.
        chunks: Number of chunks, encoded by `plain`.
        total: Sum of the widths.
        UNIT: Common divisor of sizes, widths, starts and total, which are divided by it and encoded by `plain`.
        BLOCK: Elements per program.
    """
    program = tl.program_id(0) - plain_value(pick(firsts, firsts))
    lead = tl.program_id(2).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
    size, width = length_of(sizes, firsts, UNIT), length_of(widths, firsts, UNIT)
    tiles = tl.cdiv(width, BLOCK).to(tl.int32)
    chunk = (program // tiles).to(tl.int64)
    first = (program % tiles).to(tl.int64) * BLOCK
    i = chunk * width + first
    row = (lead * plain_value(chunks) + chunk) * (plain_value(total).to(tl.int64) * UNIT)
    x_ptr = pick(xs, firsts) + (lead * size + i)
    out_ptr += row + (length_of(starts, firsts, UNIT) + first)
    lane = tl.arange(0, BLOCK)
    if (lead < plain_value(rows)) & (first + BLOCK <= width) & (i + BLOCK <= size):
        tl.store(out_ptr + lane, tl.load(x_ptr + lane))
    else:
        inside = (first + lane < width) & (lead < plain_value(rows))
        tl.store(out_ptr + lane, tl.load(x_ptr + lane, mask=inside & (i + lane < size), other=0), mask=inside)


def wrapper(tensors, dim, num_chunks):
    first = tensors[0]
    dim = dim % first.dim()
    lead = first.shape[:dim]
    if num_chunks < 1 or any([t.shape[:dim] != lead or not t.numel() or t.dtype != first.dtype for t in tensors]):
        raise RuntimeError(
            f"cannot split {[tuple(t.shape) for t in tensors]} into {num_chunks} chunks along dimension {dim}"
        )
    sizes = [math.prod(t.shape[dim:]) for t in tensors]
    widths = [triton.cdiv(t.shape[dim], num_chunks) * math.prod(t.shape[dim + 1 :]) for t in tensors]
    out = torch.empty((*lead, num_chunks, sum(widths)), dtype=first.dtype, device=first.device)
    large = out.numel() >= LARGE_RESULT
    unit = 16 if large and all([v % 16 == 0 for v in sizes + widths]) else 1
    block = 8192 if large else 1024
    for at in range(0, len(tensors), 32):
        group = [t if t.is_contiguous() else copied(t) for t in tensors[at : at + 32]]
        count = len(group)
        padding = (4 if count <= 4 else 8 if count <= 8 else 32) - count
        starts = [sum(widths[:k]) for k in range(at, at + count)]
        firsts, programs = [], 0
        for w in widths[at : at + count]:
            firsts.append(plain(programs))
            programs += num_chunks * triton.cdiv(w, block)
        numbers = [[plain(v // unit) for v in vs] for vs in (sizes[at : at + count], widths[at : at + count], starts)]
        numbers = [tuple(vs + vs[-1:] * padding) for vs in numbers]
        rows = math.prod(lead)
        chunk_cat_kernel[(programs, min(rows, MAX_GRID_YZ), triton.cdiv(rows, MAX_GRID_YZ))](
            tuple(group + group[-1:] * padding),
            out,
            tuple(firsts + [plain(programs)] * padding),
            *numbers,
            plain(rows),
            plain(num_chunks),
            plain(sum(widths) // unit),
            UNIT=unit,
            BLOCK=block,
            num_warps=8 if large else 4,
        )
    return out
