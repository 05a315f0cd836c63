"""aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) ->
    (Tensor, Tensor, Tensor)

A program instance holds BLOCK_M whole rows in registers. It computes the mean first and then the variance
about it, in two passes over registers without cancellation. Statistics are computed in fp32. They are
returned in the weight's dtype, as in ATen on the CPU, but in fp32 for fp16 and bf16 weights, as in ATen on
GPUs.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.limits import SMALL_TENSOR
from blocks.offsets import integer, integer_value, strided, walk
from blocks.rows import expanded, whole_rows

OVERLOADS = ("aten::native_layer_norm",)
DTYPES = ("bfloat16", "float16", "float32")

TILED_ELEMENTS = 4096  # elements from which `whole_rows` returns tiles for 8 warps; half a tile suits the 4 warps here
FOUR_WARPS = 2048  # elements of the largest tile for 4 warps, 16 per thread


@triton.jit
def layer_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    m,
    n,
    eps,
    across,
    along,
    PLAIN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Normalize BLOCK_M rows; BLOCK_N covers a whole row.

    Args:
        x_ptr: [m, n], read.
        weight_ptr: [n], read, or None.
        bias_ptr: [n], read, or None.
        out_ptr: [m, n], contiguous, written.
        mean_ptr: [m], written.
        rstd_ptr: [m], written.
        m: Number of rows.
        n: Elements per row.
        eps: Number that is added to the variance.
        across: (shape, strides) of x's row dimensions, from `walk`.
        along: (shape, strides) of x, weight and bias in the normalized dimensions, from `walk`.
        PLAIN: True if integers are encoded by `plain`.
        BLOCK_M: Rows per program instance.
        BLOCK_N: Power of 2 from n on.
    """
    m, n = integer_value(m, PLAIN), integer_value(n, PLAIN)
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    x_ptr += strided(rows, across[0], across[1][0], False, PLAIN)[:, None]
    x = tl.load(x_ptr + strided(cols, along[0], along[1][0], False, PLAIN)[None, :], mask=mask, other=0).to(tl.float32)
    weight = tl.full([BLOCK_N], 1, tl.float32)
    if weight_ptr is not None:  # loaded early, so that the load overlaps with the sums
        weight = tl.load(weight_ptr + strided(cols, along[0], along[1][1], False, PLAIN), mask=cols < n)
    bias = tl.full([BLOCK_N], -0.0, tl.float32)
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + strided(cols, along[0], along[1][2], False, PLAIN), mask=cols < n)
    mean = tl.where(n > 0, tl.sum(x, 1) / n, 0)  # for n == 0, the mean is 0 and rstd is NaN, as in ATen
    centered = tl.where(mask, x - mean[:, None], 0)
    rstd = 1 / tl.sqrt_rn(tl.sum(centered * centered, 1) / n + eps)
    out = centered * rstd[:, None] * weight.to(tl.float32)[None, :] + bias.to(tl.float32)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + rows, mean.to(mean_ptr.dtype.element_ty), mask=rows < m)
    tl.store(rstd_ptr + rows, rstd.to(rstd_ptr.dtype.element_ty), mask=rows < m)


def wrapper(input, normalized_shape, weight, bias, eps):
    lead = input.dim() - len(normalized_shape)
    if lead < 0 or tuple(input.shape[lead:]) != tuple(normalized_shape):
        raise RuntimeError(f"normalized_shape {tuple(normalized_shape)} does not match input {tuple(input.shape)}")
    parameter = bias if weight is None else weight
    dtype = input.dtype if parameter is None else parameter.dtype
    if dtype in (torch.bfloat16, torch.float16):
        dtype = torch.float32  # the dtype that ATen uses for statistics on GPUs
    out = torch.empty(input.shape, dtype=input.dtype, device=input.device)
    shape = (*input.shape[:lead], *[1] * len(normalized_shape))
    mean, rstd = [torch.empty(shape, dtype=dtype, device=input.device) for _ in range(2)]
    m, n = mean.numel(), math.prod(normalized_shape)
    BLOCK_M, BLOCK_N = whole_rows(m, n)
    PLAIN = input.numel() < SMALL_TENSOR
    if m * n >= TILED_ELEMENTS:
        BLOCK_M = max(BLOCK_M // 2, 1)
    layer_norm_kernel[(triton.cdiv(m, BLOCK_M),)](
        input,
        weight,
        bias,
        out,
        mean,
        rstd,
        integer(m, PLAIN),
        integer(n, PLAIN),
        eps,
        walk([input], range(lead), PLAIN),
        walk(expanded([input, weight, bias]), range(lead, input.dim()), PLAIN),
        PLAIN=PLAIN,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=4 if BLOCK_M * BLOCK_N <= FOUR_WARPS else 8,
    )
    return out, mean, rstd
