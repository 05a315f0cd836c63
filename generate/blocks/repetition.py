"""Sums over repeated elements: the gradient of nearest upsampling by whole factors."""

import triton
import triton.language as tl
from blocks.offsets import TINY_TENSOR, plain, plain_value, sixteenths
from blocks.types import compute_types, convert


@triton.jit
def repeated_sum_kernel(
    grad_ptr,
    out_ptr,
    lines,
    rows,
    columns,
    EVEN: tl.constexpr,
    COMMON: tl.constexpr,
    OPMATH: tl.constexpr,
    D: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Sum D x H x W gradient elements for each element in BLOCK_M lines.

    Args:
        grad_ptr: contiguous gradient [lines / rows * D, rows * H, columns * W], read.
        out_ptr: contiguous result [lines / rows, rows, columns], written.
        lines: result lines in all planes, encoded by `plain`.
        rows: result lines per plane, encoded by `plain`.
        columns: result elements per line, encoded by `plain`.
        EVEN: 16 divides the columns.
        COMMON: type to which elements are converted.
        OPMATH: type to compute in.
        D: repetitions of a plane.
        H: repetitions of a line.
        W: repetitions of an element within its line.
        BLOCK_M: lines per tile.
        BLOCK_N: result elements of each line per tile.
    """
    lines, rows, columns = plain_value(lines), plain_value(rows), sixteenths(plain_value(columns), EVEN)
    across = tl.cdiv(columns, BLOCK_N)
    start = tl.program_id(0) % across * BLOCK_N
    line_index = (tl.program_id(0) // across).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    first = (line_index // rows * (D * H) * rows + line_index % rows * H) * (columns * W)
    u = start * W + tl.arange(0, BLOCK_N * W)
    inside = (line_index < lines)[:, None] & (u < columns * W)[None, :]
    total = tl.zeros([BLOCK_M, BLOCK_N * W], OPMATH)
    # whole lines are added before the W repetitions are, so that loads are contiguous
    for d in tl.static_range(D):
        for h in tl.static_range(H):
            at = first[:, None] + (d * rows.to(tl.int64) * H + h) * (columns * W) + u[None, :]
            total += convert(tl.load(grad_ptr + at, mask=inside, other=0), COMMON).to(OPMATH)
    result = tl.sum(tl.reshape(total, [BLOCK_M, BLOCK_N, W]), 2)
    n = start + tl.arange(0, BLOCK_N)
    at = line_index[:, None] * columns + n[None, :]
    result = convert(result, out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, result, mask=(line_index < lines)[:, None] & (n < columns)[None, :])


def repeated_sums(grad, out, times):
    """Fill `out` and return True, or return False if the kernel does not serve the tensors.

    Both tensors must be dense, and the repetitions per axis, `times`, must be small powers of two.
    """
    D, H, W = [1] * (3 - len(times)) + times
    dense = grad.is_contiguous() and out.is_contiguous()
    if not dense or out.numel() < TINY_TENSOR or W not in (1, 2, 4, 8) or D * H not in (1, 2, 4, 8, 16):
        return False
    rows, columns = (1 if out.dim() == 3 else out.shape[-2]), out.shape[-1]
    lines = out.numel() // columns
    COMMON, OPMATH = compute_types(grad.dtype)
    BLOCK_N = min(triton.next_power_of_2(columns), 1024 // W)
    BLOCK_M = max(2048 // (BLOCK_N * W), 1)
    repeated_sum_kernel[(triton.cdiv(lines, BLOCK_M) * triton.cdiv(columns, BLOCK_N),)](
        grad,
        out,
        plain(lines),
        plain(rows),
        plain(columns),
        EVEN=columns % 16 == 0,
        COMMON=COMMON,
        OPMATH=OPMATH,
        D=D,
        H=H,
        W=W,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=4,
    )
    return True
