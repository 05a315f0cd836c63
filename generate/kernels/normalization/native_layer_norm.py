"""aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) ->
    (Tensor, Tensor, Tensor)

A program normalizes BLOCK_M rows, each held whole: the mean first, then the variance about it (two passes over
registers, no cancellation). The statistics are fp32 inside and have the weight's dtype, as ATen's have on the CPU.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::native_layer_norm",)
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
def kernel_layer_norm(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    m,
    n,
    eps,
    row_shape,
    row_stride,
    col_shape,
    col_stride,
    weight_stride,
    bias_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    offset = strided(rows, row_shape, row_stride)[:, None] + strided(cols, col_shape, col_stride)[None, :]
    x = tl.load(x_ptr + offset, mask=mask, other=0).to(tl.float32)
    mean = tl.where(n > 0, tl.sum(x, 1) / n, 0)  # of nothing it is 0, as in ATen, and rstd NaN
    centered = tl.where(mask, x - mean[:, None], 0)
    rstd = 1 / tl.sqrt_rn(tl.sum(centered * centered, 1) / n + eps)
    out = centered * rstd[:, None]
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + strided(cols, col_shape, weight_stride), mask=cols < n)
        out *= weight.to(tl.float32)[None, :]
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + strided(cols, col_shape, bias_stride), mask=cols < n)
        out += bias.to(tl.float32)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + rows, mean.to(mean_ptr.dtype.element_ty), mask=rows < m)
    tl.store(rstd_ptr + rows, rstd.to(rstd_ptr.dtype.element_ty), mask=rows < m)


def wrapper(input, normalized_shape, weight, bias, eps):
    lead = input.dim() - len(normalized_shape)
    parameter = bias if weight is None else weight
    dtype = input.dtype if parameter is None else parameter.dtype
    if input.device.type != "cpu" and dtype in (torch.bfloat16, torch.float16):
        dtype = torch.float32  # as ATen keeps the statistics there
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    statistics_shape = (*input.shape[:lead], *[1] * len(normalized_shape))
    mean = torch.empty(statistics_shape, dtype=dtype, device=input.device)
    rstd = torch.empty(statistics_shape, dtype=dtype, device=input.device)
    m, n = mean.numel(), math.prod(normalized_shape)
    BLOCK_N = triton.next_power_of_2(max(n, 1))
    BLOCK_M = min(triton.next_power_of_2(max(m, 1)), max(1, 4096 // BLOCK_N))
    kernel_layer_norm[(triton.cdiv(m, BLOCK_M),)](
        input,
        weight,
        bias,
        out,
        mean,
        rstd,
        m,
        n,
        eps,
        tuple(input.shape[:lead]),
        input.stride()[:lead],
        tuple(input.shape[lead:]),
        input.stride()[lead:],
        () if weight is None else weight.stride(),
        () if bias is None else bias.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    return out, mean, rstd
