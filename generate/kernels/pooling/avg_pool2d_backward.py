"""aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool
    ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor

Each element sums the gradient shares from its windows. There are three cases:

- A lane computes all elements in a cell, whose height and width are the strides. It is known at compile time
  which elements belong to each of the few windows at a cell, and each window's gradient is read once.
- A window that covers the whole plane: its gradient is spread over the plane.
- All others use the general window kernels.
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.offsets import integer_values, integers, plain, plain_value
from blocks.planes import by_window, ends_beyond, magic_numbers, magic_quotient, on_planes
from blocks.pooling import expect_gradient, sliding_axes, sliding_back, taps_back
from blocks.types import compute_types, convert
from blocks.windows import batched, suggested_format, windows

OVERLOADS = ("aten::avg_pool2d_backward",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int64")

DIVISOR_LIMIT = 2**29  # below it, the divisor d is an int32 argument; `plain` encodes it as 2 * d + 3
# Loops over a cell's elements and windows are unrolled at compile time, and a thread has all of them in registers.
MOST_CELL_ELEMENTS = 16
MOST_CELL_WINDOWS = 9


@triton.jit
def cell_kernel(
    grad_ptr,
    out_ptr,
    n,
    down,
    across,
    sizes,
    divisor,
    WINDOW: tl.constexpr,
    SIZED: tl.constexpr,
    PADDED: tl.constexpr,
    PAIRS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute one cell per lane.

    Window j at cell b begins at element (b + j) * stride - padding. Integer arguments are encoded, and `down`
    and `across` are divisors for `magic_quotient`.

    Args:
        grad_ptr: [planes, OH, OW], contiguous, read.
        out_ptr: [planes, H, W], contiguous, written.
        n: Number of cells.
        down: Cells per column of a plane.
        across: Cells per row of a plane.
        sizes: (H, W, OH, OW).
        divisor: Divisor of a gradient, unless SIZED.
        WINDOW: (KH, KW, SH, SW, PH, PW): window size, stride and padding.
        SIZED: Divide a gradient by its window's own size. Otherwise divide by `divisor`.
        PADDED: The window's own size includes padding.
        PAIRS: Store two columns at a time; the column stride is 2 and W is even.
        BLOCK: Cells per program instance.
    """
    GRAD_TYPE: tl.constexpr = grad_ptr.dtype.element_ty
    ACC: tl.constexpr = GRAD_TYPE if GRAD_TYPE.primitive_bitwidth == 64 else tl.float32
    KH: tl.constexpr = WINDOW[0]
    KW: tl.constexpr = WINDOW[1]
    SH: tl.constexpr = WINDOW[2]
    SW: tl.constexpr = WINDOW[3]
    PH: tl.constexpr = WINDOW[4]
    PW: tl.constexpr = WINDOW[5]
    FIRST_ROW: tl.constexpr = -((KH - 1 - PH) // SH)
    FIRST_COLUMN: tl.constexpr = -((KW - 1 - PW) // SW)
    ROWS: tl.constexpr = (SH - 1 + PH) // SH + 1 - FIRST_ROW
    COLUMNS: tl.constexpr = (SW - 1 + PW) // SW + 1 - FIRST_COLUMN
    H, W, OH, OW = integer_values(sizes, True)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < plain_value(n)
    cell_row = magic_quotient(i, across)
    plane = magic_quotient(cell_row, down)
    column = i - cell_row * ((W + SW - 1) // SW)
    row = cell_row - plane * ((H + SH - 1) // SH)
    shares = ()
    for r in tl.static_range(ROWS):
        y = row + (FIRST_ROW + r)
        valid = inside & (y >= 0) & (y < OH)
        for c in tl.static_range(COLUMNS):
            x = column + (FIRST_COLUMN + c)
            mask = valid & (x >= 0) & (x < OW)
            grad = tl.load(grad_ptr + ((plane * OH + y) * OW + x), mask=mask, other=0).to(ACC)
            arguments = grad, y * SH - PH, x * SW - PW, (H, W), divisor
            shares = shares + (by_window(*arguments, WINDOW, SIZED, PADDED),)
    line = plane * H + row * SH
    for a in tl.static_range(SH):
        sums = ()
        for b in tl.static_range(SW):
            acc = tl.zeros([BLOCK], ACC)
            for r in tl.static_range(ROWS):
                for c in tl.static_range(COLUMNS):
                    down_by = a + PH - (FIRST_ROW + r) * SH
                    right_by = b + PW - (FIRST_COLUMN + c) * SW
                    if down_by >= 0 and down_by < KH and right_by >= 0 and right_by < KW:
                        acc += shares[r * COLUMNS + c]
            sums = sums + (convert(acc, out_ptr.dtype.element_ty),)
        mask = inside & (row * SH + a < H)
        if PAIRS:
            offset = ((line + a) * (W // 2) + column)[:, None] * 2 + tl.arange(0, 2)[None, :]
            tl.store(out_ptr + offset, tl.join(sums[0], sums[1]), mask=mask[:, None])
        else:
            for b in tl.static_range(SW):
                offset = (line + a) * W + column * SW + b
                tl.store(out_ptr + offset, sums[b], mask=mask & (column * SW + b < W))


@triton.jit
def spread_kernel(grad_ptr, out_ptr, n, plane, divisor, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """Store each plane's gradient, divided by `divisor`, to all elements in the plane.

    Args:
        grad_ptr: [planes], contiguous, read.
        out_ptr: [planes, H, W], contiguous, written.
        n: Number of elements in the output, encoded by `plain`.
        plane: Elements per plane, from `magic_numbers`.
        divisor: Divisor of a gradient, encoded by `plain`.
        ACC: Triton type in which the gradient is divided.
        BLOCK: Elements per program instance.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < plain_value(n)
    grad = tl.load(grad_ptr + magic_quotient(i, plane), mask=inside, other=0).to(ACC)
    size = (tl.zeros_like(i) + plain_value(divisor)).to(ACC)
    share = grad // size if ACC.is_int() else divide(grad, size)
    tl.store(out_ptr + i, convert(share, out_ptr.dtype.element_ty), mask=inside)


def wrapper(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    counted = 1 if count_include_pad else 0
    divisor_mode = (counted, 1) if divisor_override is None else (2, divisor_override)
    axes, sizes = sliding_axes(self, 2, kernel_size, stride, padding, 1, ceil_mode, *divisor_mode)
    expect_gradient(grad_output, self, 2, sizes)
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device, memory_format=suggested_format(self))
    n = out.numel()
    (SH, PH, _, KH, H, OH, _, _), (SW, PW, _, KW, W, OW, _, _) = axes[0][0], axes[1][0]
    covers_plane = (KH, KW, PH, PW) == (H, W, 0, 0)
    fits = on_planes(grad_output, out) and abs(divisor_override or 1) < DIVISOR_LIMIT
    cell_windows = triton.cdiv(KH, SH) * triton.cdiv(KW, SW)
    has_small_cells = SH * SW <= MOST_CELL_ELEMENTS and cell_windows <= MOST_CELL_WINDOWS
    if n == 0 or not fits or not (covers_plane or has_small_cells):
        windows(sliding_back, "share", batched(grad_output, 2), batched(out, 2), axes, taps_back(axes))
        return out
    divisor = plain(KH * KW if divisor_override is None else divisor_override)
    if covers_plane:
        arguments = grad_output, out, plain(n), magic_numbers(H * W), divisor
        spread_kernel[(triton.cdiv(n, 512),)](*arguments, ACC=compute_types(self.dtype)[1], BLOCK=512, num_warps=4)
        return out
    over = ends_beyond(axes)
    rows, columns = triton.cdiv(H, SH), triton.cdiv(W, SW)
    cells = n // (H * W) * rows * columns
    cell_kernel[(triton.cdiv(cells, 256),)](
        grad_output,
        out,
        plain(cells),
        magic_numbers(rows),
        magic_numbers(columns),
        integers((H, W, OH, OW), True),
        divisor,
        WINDOW=(KH, KW, SH, SW, PH, PW),
        SIZED=divisor_override is None and (over or (not count_include_pad and PH + PW > 0)),
        PADDED=count_include_pad,
        PAIRS=SW == 2 and W % 2 == 0,
        BLOCK=256,
        num_warps=4,
    )
    return out
