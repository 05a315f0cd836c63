"""aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd,
    Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)

With xhat = (x - mean) * rstd and g = grad * weight:

- grad_input = rstd * (g - mean(g) - xhat * mean(g * xhat)).
- grad_weight is the sum of grad * xhat over rows, and grad_bias the sum of grad.

A program instance takes every PARTS-th tile of rows. It reads grad and x once, writes grad_input, and adds up
its own part of the other two in fp32. A second kernel adds up the parts in a fixed order.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer, integer_value, strided, walk
from blocks.rows import expanded, whole_rows

OVERLOADS = ("aten::native_layer_norm_backward",)
DTYPES = ("bfloat16", "float16", "float32")

MOST_PARTS = 1024  # enough to fill any GPU, few enough to add up quickly
STAGED_ROW = 4096  # longest row for two stages; with 8192 fp32 elements, two stages of two tensors take 128 KiB


@triton.jit
def load_tile(x_ptr, row_offset, col_offset, mask):
    """Load x at these row and column offsets as fp32, with 0 outside the mask."""
    return tl.load(x_ptr + row_offset[:, None] + col_offset[None, :], mask=mask, other=0.0).to(tl.float32)


@triton.jit
def layer_norm_backward_kernel(
    grad_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
    weight_ptr,
    out_ptr,
    grad_weight_ptr,
    grad_bias_ptr,
    m,
    n,
    across,
    along,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute grad_input, and row program_id(0) of the partial sums for grad_weight and grad_bias.

    Args:
        grad_ptr: [m, n], read.
        x_ptr: [m, n], read.
        mean_ptr: [m], read.
        rstd_ptr: [m], read.
        weight_ptr: [n], read, or None.
        out_ptr: [m, n], contiguous, written, or None.
        grad_weight_ptr: [programs, n], written, or None.
        grad_bias_ptr: [programs, n], written, or None.
        m: Number of rows.
        n: Elements per row.
        across: (shape, strides) of grad, x, mean and rstd in the row dimensions, from `walk`.
        along: (shape, strides) of grad, x and weight in the normalized dimensions, from `walk`.
        PLAIN: True if integers are encoded by `plain`.
        BLOCK_M: Rows per tile.
        BLOCK_N: Power of 2 from n on.
        STAGES: Software pipeline stages for the loop over tiles.
    """
    m, n = integer_value(m, PLAIN), integer_value(n, PLAIN)
    part = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    grad_cols = strided(cols, along[0], along[1][0], False, PLAIN)
    x_cols = strided(cols, along[0], along[1][1], False, PLAIN)
    if weight_ptr is not None:
        weight_ptr += strided(cols, along[0], along[1][2], False, PLAIN)
        weight = tl.load(weight_ptr, mask=cols < n, other=0).to(tl.float32)
    grad_weight = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    grad_bias = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.num_programs(0), num_stages=STAGES):
        rows = tile * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        g = load_tile(grad_ptr, strided(rows, across[0], across[1][0], False, PLAIN), grad_cols, mask)
        x = load_tile(x_ptr, strided(rows, across[0], across[1][1], False, PLAIN), x_cols, mask)
        mean = tl.load(mean_ptr + strided(rows, across[0], across[1][2], False, PLAIN), mask=rows < m, other=0).to(
            tl.float32
        )
        rstd = tl.load(rstd_ptr + strided(rows, across[0], across[1][3], False, PLAIN), mask=rows < m, other=0).to(
            tl.float32
        )
        xhat = tl.where(mask, (x - mean[:, None]) * rstd[:, None], 0)
        if grad_weight_ptr is not None:
            grad_weight += g * xhat
        if grad_bias_ptr is not None:
            grad_bias += g
        if out_ptr is not None:
            if weight_ptr is not None:
                g = tl.where(mask, g * weight[None, :], 0)  # tl.where rounds the product: it cannot fuse into an fma
            mean_g = tl.sum(g, 1) / n
            mean_gx = tl.sum(g * xhat, 1) / n
            out = rstd[:, None] * (g - mean_g[:, None] - xhat * mean_gx[:, None])
            tl.store(out_ptr + rows[:, None] * n + cols[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)
    if grad_weight_ptr is not None:
        out = tl.sum(grad_weight, 0).to(grad_weight_ptr.dtype.element_ty)
        tl.store(grad_weight_ptr + part * n + cols, out, mask=cols < n)
    if grad_bias_ptr is not None:
        out = tl.sum(grad_bias, 0).to(grad_bias_ptr.dtype.element_ty)
        tl.store(grad_bias_ptr + part * n + cols, out, mask=cols < n)


@triton.jit
def columns_kernel(parts, outs, count, n, PLAIN: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Sum each tensor in `parts`, [count, n], over its rows, for BLOCK_N columns.

    Args:
        parts: Tuple of [count, n] fp32, contiguous, read.
        outs: Tuple of [n], written.
        count: Number of parts.
        n: Number of columns.
        PLAIN: True if integers are encoded by `plain`.
        BLOCK_M: Parts that are loaded at a time.
        BLOCK_N: Columns per program instance.
    """
    count, n = integer_value(count, PLAIN), integer_value(n, PLAIN)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    for k in tl.static_range(len(outs)):
        total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for start in range(0, count, BLOCK_M):
            rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
            mask = (rows < count)[:, None] & (cols < n)[None, :]
            total += tl.load(parts[k] + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)
        tl.store(outs[k] + cols, tl.sum(total, 0).to(outs[k].dtype.element_ty), mask=cols < n)


def fit(weight, bias, cols):
    """Return True if weight and bias have one element per column or are None."""
    return all(t is None or t.shape == cols for t in (weight, bias))


def wrapper(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    if grad_out.dtype != input.dtype:
        raise RuntimeError(f"the gradient must be {input.dtype}, got {grad_out.dtype}")
    lead = input.dim() - len(normalized_shape)
    cols = tuple(input.shape[lead:])
    m, n = math.prod(input.shape[:lead]), math.prod(cols)
    if grad_out.shape != input.shape or cols != tuple(normalized_shape) or not fit(weight, bias, cols):
        raise RuntimeError(
            f"gradient {tuple(grad_out.shape)} does not fit {list(input.shape)} over {list(normalized_shape)}"
        )
    if any(t.numel() != m or t.shape[:lead] != input.shape[:lead] for t in (mean, rstd)):
        raise NotImplementedError(
            f"mean {tuple(mean.shape)} and rstd {tuple(rstd.shape)} do not fit {tuple(input.shape)}"
        )
    device = input.device
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = torch.empty(input.shape, dtype=input.dtype, device=device)
    if output_mask[1] and weight is not None:
        grad_weight = torch.empty(cols, dtype=weight.dtype, device=device)
    if output_mask[2] and bias is not None:
        grad_bias = torch.empty(cols, dtype=bias.dtype, device=device)
    BLOCK_M, BLOCK_N = whole_rows(m, n)
    PLAIN = input.numel() < SMALL_TENSOR
    parts = max(min(triton.cdiv(m, BLOCK_M), MOST_PARTS), 1)
    sums = both = [grad_weight, grad_bias]
    if parts > 1:
        sums = [g if g is None else torch.empty((parts, n), dtype=torch.float32, device=device) for g in both]
    layer_norm_backward_kernel[(parts,)](
        grad_out,
        input,
        mean,
        rstd,
        weight,
        grad_input,
        *sums,
        integer(m, PLAIN),
        integer(n, PLAIN),
        walk([grad_out, input, mean, rstd], range(lead), PLAIN),
        walk(expanded([grad_out, input, weight]), range(lead, input.dim()), PLAIN),
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        STAGES=2 if BLOCK_N <= STAGED_ROW else 1,
        num_warps=8,
    )
    outs = tuple([g for g in both if g is not None])
    if parts > 1 and outs:
        partial_sums = tuple([g for g in sums if g is not None])
        sizes = integer(parts, PLAIN), integer(n, PLAIN)
        columns_kernel[(triton.cdiv(n, 16),)](
            partial_sums, outs, *sizes, PLAIN=PLAIN, BLOCK_M=256, BLOCK_N=16, num_warps=8
        )
    return grad_input, grad_weight, grad_bias
