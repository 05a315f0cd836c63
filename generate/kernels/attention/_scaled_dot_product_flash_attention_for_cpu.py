"""aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool
    is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)

Tiled attention with online softmax (arXiv:2205.14135): a program owns BLOCK_M queries of one head and passes over its
keys and values BLOCK_N at a time, so no T x T matrix is ever in memory. q, k and v are read through their own strides.
Each key/value head serves H / Hk query heads in a row. A query whose keys are all masked gives 0. Returns the output,
laid out as query, and logsumexp, laid out as [B, T, H].
fp16 and bf16 are multiplied as tf32, which holds them exactly.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_scaled_dot_product_flash_attention_for_cpu",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def load_rows(x_ptr, rows, cols, length, D, stride):
    """x[rows, :D] of one head in fp32, 0 outside. stride: of [B, H, T, D]."""
    mask = (rows < length)[:, None] & (cols < D)[None, :]
    return tl.load(x_ptr + rows[:, None] * stride[2] + cols[None, :] * stride[3], mask=mask, other=0).to(tl.float32)


@triton.jit
def masked_scores(
    q, k, rows, cols, Tq, Tk, scale, mask_ptr, mask_stride, CAUSAL: tl.constexpr, PRECISION: tl.constexpr
):
    """scale * q @ k^T plus the additive mask in fp32; -inf outside the matrix and, if causal, right of its diagonal."""
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    valid = (rows < Tq)[:, None] & (cols < Tk)[None, :]
    if mask_ptr is not None:
        offset = rows[:, None] * mask_stride[2] + cols[None, :] * mask_stride[3]
        scores += tl.load(mask_ptr + offset, mask=valid, other=0).to(tl.float32)
    if CAUSAL:
        valid = valid & (rows[:, None] >= cols[None, :])
    return tl.where(valid, scores, float("-inf"))


@triton.jit
def kernel_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    mask_ptr,
    out_ptr,
    lse_ptr,
    H,
    GROUP,
    Tq,
    Tk,
    D,
    scale,
    q_stride,
    k_stride,
    v_stride,
    mask_stride,
    out_stride,
    lse_stride,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    b = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    q_ptr += b * q_stride[0] + h * q_stride[1]
    k_ptr += b * k_stride[0] + h // GROUP * k_stride[1]
    v_ptr += b * v_stride[0] + h // GROUP * v_stride[1]
    out_ptr += b * out_stride[0] + h * out_stride[1]
    lse_ptr += b * lse_stride[0] + h * lse_stride[1]
    if mask_ptr is not None:
        mask_ptr += b * mask_stride[0] + h * mask_stride[1]
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    q = load_rows(q_ptr, rows, dims, Tq, D, q_stride)
    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    end = Tk
    if CAUSAL:
        end = tl.minimum(Tk, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k = load_rows(k_ptr, cols, dims, Tk, D, k_stride)
        v = load_rows(v_ptr, cols, dims, Tk, D, v_stride)
        scores = masked_scores(q, k, rows, cols, Tq, Tk, scale, mask_ptr, mask_stride, CAUSAL, PRECISION)
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        finite = tl.where(new_peak == float("-inf"), 0, new_peak)
        p = tl.exp(scores - finite[:, None])
        shrink = tl.exp(peak - finite)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p, v, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    peak = tl.where(total == 0, 0, peak)
    total = tl.where(total == 0, 1, total)
    out = acc / total[:, None]
    mask = (rows < Tq)[:, None] & (dims < D)[None, :]
    out_ptr += rows[:, None] * out_stride[2] + dims[None, :] * out_stride[3]
    tl.store(out_ptr, out.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(lse_ptr + rows * lse_stride[2], peak + tl.log(total), mask=rows < Tq)


def wrapper(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p != 0.0:
        raise NotImplementedError(f"attention with dropout_p={dropout_p}: only 0.0")
    (B, H, Tq, D), (Hk, Tk) = query.shape, key.shape[1:3]
    if key.shape != (B, Hk, Tk, D) or value.shape != key.shape or H % max(Hk, 1):
        raise NotImplementedError(f"query {tuple(query.shape)} with key {tuple(key.shape)}, value {tuple(value.shape)}")
    out = torch.empty_like(query)
    logsumexp = torch.empty((B, Tq, H), dtype=torch.float32, device=query.device).transpose(1, 2)
    BLOCK_D = max(triton.next_power_of_2(D), 16)
    BLOCK = 64 if BLOCK_D <= 64 else 32
    kernel_attention[(triton.cdiv(Tq, BLOCK), B * H)](
        query,
        key,
        value,
        attn_mask,
        out,
        logsumexp,
        H,
        max(H, 1) // max(Hk, 1),
        Tq,
        Tk,
        D,
        1 / math.sqrt(max(D, 1)) if scale is None else scale,
        query.stride(),
        key.stride(),
        value.stride(),
        () if attn_mask is None else attn_mask.expand(B, H, Tq, Tk).stride(),
        out.stride(),
        logsumexp.stride(),
        CAUSAL=is_causal,
        PRECISION="ieee" if query.dtype == torch.float32 else "tf32",
        BLOCK_M=BLOCK,
        BLOCK_N=BLOCK,
        BLOCK_D=BLOCK_D,
        num_warps=4,
    )
    return out, logsumexp
