"""aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd,
    Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)

With xhat = (x - mean) * rstd and g = grad * weight: grad_input = rstd * (g - mean(g) - xhat * mean(g * xhat)), a
program per BLOCK_M rows; grad_weight = sum of grad * xhat and grad_bias = sum of grad over rows, a program per BLOCK_N
columns.
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
def load_tile(x_ptr, rows, cols, m, n, row_shape, row_stride, col_shape, col_stride):
    """x[rows, cols] in fp32, 0 outside."""
    offset = strided(rows, row_shape, row_stride)[:, None] + strided(cols, col_shape, col_stride)[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    return tl.load(x_ptr + offset, mask=mask, other=0).to(tl.float32)


@triton.jit
def kernel_input(
    grad_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
    weight_ptr,
    out_ptr,
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
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    g = load_tile(grad_ptr, rows, cols, m, n, row_shape, grad_row_stride, col_shape, grad_col_stride)
    x = load_tile(x_ptr, rows, cols, m, n, row_shape, x_row_stride, col_shape, x_col_stride)
    mean = tl.load(mean_ptr + strided(rows, row_shape, mean_stride), mask=rows < m).to(tl.float32)
    rstd = tl.load(rstd_ptr + strided(rows, row_shape, rstd_stride), mask=rows < m).to(tl.float32)
    xhat = tl.where(mask, (x - mean[:, None]) * rstd[:, None], 0)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + strided(cols, col_shape, weight_stride), mask=cols < n, other=0)
        g *= weight.to(tl.float32)[None, :]
    mean_g = tl.sum(g, 1) / n
    mean_gx = tl.sum(g * xhat, 1) / n
    out = rstd[:, None] * (g - mean_g[:, None] - xhat * mean_gx[:, None])
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_parameters(
    grad_ptr,
    x_ptr,
    mean_ptr,
    rstd_ptr,
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
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    grad_weight = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    grad_bias = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, m, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
        g = load_tile(grad_ptr, rows, cols, m, n, row_shape, grad_row_stride, col_shape, grad_col_stride)
        grad_bias += g
        if grad_weight_ptr is not None:
            x = load_tile(x_ptr, rows, cols, m, n, row_shape, x_row_stride, col_shape, x_col_stride)
            mean = tl.load(mean_ptr + strided(rows, row_shape, mean_stride), mask=rows < m, other=0).to(tl.float32)
            rstd = tl.load(rstd_ptr + strided(rows, row_shape, rstd_stride), mask=rows < m, other=0).to(tl.float32)
            grad_weight += g * (x - mean[:, None]) * rstd[:, None]
    if grad_weight_ptr is not None:
        out = tl.sum(grad_weight, 0).to(grad_weight_ptr.dtype.element_ty)
        tl.store(grad_weight_ptr + cols, out, mask=cols < n)
    if grad_bias_ptr is not None:
        tl.store(grad_bias_ptr + cols, tl.sum(grad_bias, 0).to(grad_bias_ptr.dtype.element_ty), mask=cols < n)


def wrapper(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    lead = input.dim() - len(normalized_shape)
    rows, cols = tuple(input.shape[:lead]), tuple(input.shape[lead:])
    m, n = math.prod(rows), math.prod(cols)
    strides = (
        grad_out.stride()[:lead],
        grad_out.stride()[lead:],
        input.stride()[:lead],
        input.stride()[lead:],
        mean.stride()[:lead],
        rstd.stride()[:lead],
    )
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        grad_input = torch.empty(input.shape, dtype=input.dtype, device=input.device)
        BLOCK_N = triton.next_power_of_2(max(n, 1))
        BLOCK_M = min(triton.next_power_of_2(max(m, 1)), max(1, 4096 // BLOCK_N))
        weight_stride = () if weight is None else weight.stride()
        kernel_input[(triton.cdiv(m, BLOCK_M),)](
            grad_out,
            input,
            mean,
            rstd,
            weight,
            grad_input,
            m,
            n,
            rows,
            cols,
            *strides,
            weight_stride,
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
            num_warps=8,
        )
    if output_mask[1] and weight is not None:
        grad_weight = torch.empty(cols, dtype=weight.dtype, device=input.device)
    if output_mask[2] and bias is not None:
        grad_bias = torch.empty(cols, dtype=bias.dtype, device=input.device)
    if grad_weight is not None or grad_bias is not None:
        BLOCK_N = min(triton.next_power_of_2(max(n, 1)), 64)
        BLOCK_M = min(triton.next_power_of_2(max(m, 1)), 64)
        kernel_parameters[(triton.cdiv(n, BLOCK_N),)](
            grad_out,
            input,
            mean,
            rstd,
            grad_weight,
            grad_bias,
            m,
            n,
            rows,
            cols,
            *strides,
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
            num_warps=8,
        )
    return grad_input, grad_weight, grad_bias
