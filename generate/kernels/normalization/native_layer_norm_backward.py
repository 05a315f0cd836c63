"""aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd,
    Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)

With xhat = (x - mean) * rstd and g = grad * weight: grad_input = rstd * (g - mean(g) - xhat * mean(g * xhat)),
grad_weight = sum of grad * xhat and grad_bias = sum of grad over rows. A program takes every PARTS-th tile of rows: it
reads grad and x once, writes their grad_input and adds up its own part of the other two in fp32. A second kernel adds
the parts in their order.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::native_layer_norm_backward",)
DTYPES = ("bfloat16", "float16", "float32")


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
def load_tile(x_ptr, row_offset, col_offset, mask):
    """x at rows and columns of these offsets in fp32, 0 outside."""
    return tl.load(x_ptr + row_offset[:, None] + col_offset[None, :], mask=mask, other=0.0).to(tl.float32)


@triton.jit
def kernel_layer_norm_backward(
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
    row_shape,
    col_shape,
    grad_row_stride,
    grad_col_stride,
    x_row_stride,
    x_col_stride,
    mean_stride,
    rstd_stride,
    weight_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
):
    """grad_input, and row program_id(0) of the parts [programs, n] of grad_weight and grad_bias."""
    part = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    grad_cols = strided(cols, col_shape, grad_col_stride)
    x_cols = strided(cols, col_shape, x_col_stride)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + strided(cols, col_shape, weight_stride), mask=cols < n, other=0).to(tl.float32)
    grad_weight = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    grad_bias = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.num_programs(0), num_stages=STAGES):
        rows = tile * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (rows < m)[:, None] & (cols < n)[None, :]
        g = load_tile(grad_ptr, strided(rows, row_shape, grad_row_stride), grad_cols, mask)
        x = load_tile(x_ptr, strided(rows, row_shape, x_row_stride), x_cols, mask)
        mean = tl.load(mean_ptr + strided(rows, row_shape, mean_stride), mask=rows < m, other=0).to(tl.float32)
        rstd = tl.load(rstd_ptr + strided(rows, row_shape, rstd_stride), mask=rows < m, other=0).to(tl.float32)
        xhat = tl.where(mask, (x - mean[:, None]) * rstd[:, None], 0)
        if grad_weight_ptr is not None:
            grad_weight += g * xhat
        if grad_bias_ptr is not None:
            grad_bias += g
        if out_ptr is not None:
            if weight_ptr is not None:
                g *= weight[None, :]
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
def add_parts(parts_ptr, out_ptr, count, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Columns program_id(0) * BLOCK_N and on of the sum of the rows of parts [count, n]."""
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, count, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (rows < count)[:, None] & (cols < n)[None, :]
        total += tl.load(parts_ptr + rows[:, None] * n + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + cols, tl.sum(total, 0).to(out_ptr.dtype.element_ty), mask=cols < n)


@triton.jit
def kernel_add_parts(
    weight_parts_ptr,
    bias_parts_ptr,
    grad_weight_ptr,
    grad_bias_ptr,
    count,
    n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    if grad_weight_ptr is not None:
        add_parts(weight_parts_ptr, grad_weight_ptr, count, n, BLOCK_M, BLOCK_N)
    if grad_bias_ptr is not None:
        add_parts(bias_parts_ptr, grad_bias_ptr, count, n, BLOCK_M, BLOCK_N)


def flat(tensors, weight, shape, lead):
    """Shapes of rows and columns and strides of grad, input, mean, rstd (rows) and weight: one dimension each where all
    are contiguous."""
    if all(t.is_contiguous() for t in tensors) and (weight is None or weight.is_contiguous()):
        m, n = math.prod(shape[:lead]), math.prod(shape[lead:])
        return ((m,), (n,), (n,), (1,), (n,), (1,), (1,), (1,), (1,))
    grad, x, mean, rstd = (t.stride() for t in tensors)
    strides = grad[:lead], grad[lead:], x[:lead], x[lead:], mean[:lead], rstd[:lead]
    return tuple(shape[:lead]), tuple(shape[lead:]), *strides, () if weight is None else weight.stride()


def fit(weight, bias, cols):
    """Whether there is one of these for each column, if there is one."""
    return all(t is None or t.shape == cols for t in (weight, bias))


def wrapper(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    lead = input.dim() - len(normalized_shape)
    cols = tuple(input.shape[lead:])
    m, n = math.prod(input.shape[:lead]), math.prod(cols)
    if grad_out.shape != input.shape or cols != tuple(normalized_shape) or not fit(weight, bias, cols):
        raise RuntimeError(f"gradient {tuple(grad_out.shape)} of {tuple(input.shape)} over {tuple(normalized_shape)}")
    if any(t.numel() != m or t.shape[:lead] != input.shape[:lead] for t in (mean, rstd)):
        raise NotImplementedError(f"mean {tuple(mean.shape)} and rstd {tuple(rstd.shape)} of {tuple(input.shape)}")
    device = input.device
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = torch.empty(input.shape, dtype=input.dtype, device=device)
    if output_mask[1] and weight is not None:
        grad_weight = torch.empty(cols, dtype=weight.dtype, device=device)
    if output_mask[2] and bias is not None:
        grad_bias = torch.empty(cols, dtype=bias.dtype, device=device)
    BLOCK_N = triton.next_power_of_2(max(n, 1))
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), max(1, 4096 // BLOCK_N))
    parts = max(min(triton.cdiv(m, BLOCK_M), 1024), 1)  # enough programs for any GPU, few enough to add up quickly
    sums = both = [grad_weight, grad_bias]
    if parts > 1:
        sums = [g if g is None else torch.empty((parts, n), dtype=torch.float32, device=device) for g in both]
    kernel_layer_norm_backward[(parts,)](
        grad_out,
        input,
        mean,
        rstd,
        weight,
        grad_input,
        *sums,
        m,
        n,
        *flat((grad_out, input, mean, rstd), weight, input.shape, lead),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        STAGES=2 if BLOCK_N <= 4096 else 1,
        num_warps=8,
    )
    if parts > 1 and sums != [None, None]:
        kernel_add_parts[(triton.cdiv(n, 16),)](*sums, *both, parts, n, BLOCK_M=256, BLOCK_N=16, num_warps=8)
    return grad_input, grad_weight, grad_bias
