"""aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value,
    Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) ->
    (Tensor grad_query, Tensor grad_key, Tensor grad_value)

Tiled backward of attention (arXiv:2205.14135, algorithm 4) in two kernels, neither with a T x T matrix in memory: a
program owns BLOCK_N keys and passes over the queries for grad_key and grad_value, or BLOCK_M queries and passes over
the keys for grad_query. Probabilities are recomputed: P = exp(S - logsumexp), dS = P * (dO V^T - rowsum(dO * O)).
Each key/value head serves H / Hk query heads in a row, and gets the sum of their gradients. dropout_p does not count,
as in ATen, whose forward takes none.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_scaled_dot_product_flash_attention_for_cpu_backward",)
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
def score_gradient(
    grad, out, q, k, v, lse_ptr, rows, cols, Tq, Tk, scale, mask_ptr, mask_stride, lse_stride, CAUSAL, PRECISION
):
    """(P, dS) of one tile [queries, keys], fp32."""
    scores = masked_scores(q, k, rows, cols, Tq, Tk, scale, mask_ptr, mask_stride, CAUSAL, PRECISION)
    lse = tl.load(lse_ptr + rows * lse_stride[2], mask=rows < Tq, other=0)
    p = tl.exp(scores - lse[:, None])
    delta = tl.sum(grad * out, 1)
    return p, p * (tl.dot(grad, tl.trans(v), input_precision=PRECISION) - delta[:, None])


@triton.jit
def kernel_key_value(
    grad_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    mask_ptr,
    grad_k_ptr,
    grad_v_ptr,
    Hk,
    GROUP,
    Tq,
    Tk,
    D,
    scale,
    grad_stride,
    q_stride,
    k_stride,
    v_stride,
    out_stride,
    lse_stride,
    mask_stride,
    grad_k_stride,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    b = (tl.program_id(1) // Hk).to(tl.int64)
    hk = (tl.program_id(1) % Hk).to(tl.int64)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    k = load_rows(k_ptr + b * k_stride[0] + hk * k_stride[1], cols, dims, Tk, D, k_stride)
    v = load_rows(v_ptr + b * v_stride[0] + hk * v_stride[1], cols, dims, Tk, D, v_stride)
    grad_k = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    grad_v = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    first = tl.program_id(0) * BLOCK_N // BLOCK_M * BLOCK_M if CAUSAL else 0
    for h in range(hk * GROUP, (hk + 1) * GROUP):
        head_mask_ptr = mask_ptr
        if mask_ptr is not None:
            head_mask_ptr += b * mask_stride[0] + h * mask_stride[1]
        for start in range(first, Tq, BLOCK_M):
            rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
            q = load_rows(q_ptr + b * q_stride[0] + h * q_stride[1], rows, dims, Tq, D, q_stride)
            grad = load_rows(grad_ptr + b * grad_stride[0] + h * grad_stride[1], rows, dims, Tq, D, grad_stride)
            out = load_rows(out_ptr + b * out_stride[0] + h * out_stride[1], rows, dims, Tq, D, out_stride)
            head_lse_ptr = lse_ptr + b * lse_stride[0] + h * lse_stride[1]
            p, ds = score_gradient(
                grad,
                out,
                q,
                k,
                v,
                head_lse_ptr,
                rows,
                cols,
                Tq,
                Tk,
                scale,
                head_mask_ptr,
                mask_stride,
                lse_stride,
                CAUSAL,
                PRECISION,
            )
            grad_v = tl.dot(tl.trans(p), grad, grad_v, input_precision=PRECISION)
            grad_k = tl.dot(tl.trans(ds), q, grad_k, input_precision=PRECISION)
    offset = b * grad_k_stride[0] + hk * grad_k_stride[1]
    offset += cols[:, None] * grad_k_stride[2] + dims[None, :] * grad_k_stride[3]
    mask = (cols < Tk)[:, None] & (dims < D)[None, :]
    tl.store(grad_k_ptr + offset, (grad_k * scale).to(grad_k_ptr.dtype.element_ty), mask=mask)
    tl.store(grad_v_ptr + offset, grad_v.to(grad_v_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_query(
    grad_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    mask_ptr,
    grad_q_ptr,
    H,
    GROUP,
    Tq,
    Tk,
    D,
    scale,
    grad_stride,
    q_stride,
    k_stride,
    v_stride,
    out_stride,
    lse_stride,
    mask_stride,
    grad_q_stride,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    b = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    k_ptr += b * k_stride[0] + h // GROUP * k_stride[1]
    v_ptr += b * v_stride[0] + h // GROUP * v_stride[1]
    lse_ptr += b * lse_stride[0] + h * lse_stride[1]
    if mask_ptr is not None:
        mask_ptr += b * mask_stride[0] + h * mask_stride[1]
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    q = load_rows(q_ptr + b * q_stride[0] + h * q_stride[1], rows, dims, Tq, D, q_stride)
    grad = load_rows(grad_ptr + b * grad_stride[0] + h * grad_stride[1], rows, dims, Tq, D, grad_stride)
    out = load_rows(out_ptr + b * out_stride[0] + h * out_stride[1], rows, dims, Tq, D, out_stride)
    grad_q = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    end = Tk
    if CAUSAL:
        end = tl.minimum(Tk, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k = load_rows(k_ptr, cols, dims, Tk, D, k_stride)
        v = load_rows(v_ptr, cols, dims, Tk, D, v_stride)
        p, ds = score_gradient(
            grad, out, q, k, v, lse_ptr, rows, cols, Tq, Tk, scale, mask_ptr, mask_stride, lse_stride, CAUSAL, PRECISION
        )
        grad_q = tl.dot(ds, k, grad_q, input_precision=PRECISION)
    offset = b * grad_q_stride[0] + h * grad_q_stride[1]
    offset += rows[:, None] * grad_q_stride[2] + dims[None, :] * grad_q_stride[3]
    mask = (rows < Tq)[:, None] & (dims < D)[None, :]
    tl.store(grad_q_ptr + offset, (grad_q * scale).to(grad_q_ptr.dtype.element_ty), mask=mask)


def empty_like_bthd(x):
    """New [B, H, T, D] tensor laid out as [B, T, H, D]."""
    B, H, T, D = x.shape
    return torch.empty((B, T, H, D), dtype=x.dtype, device=x.device).transpose(1, 2)


def wrapper(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None):
    (B, H, Tq, D), (Hk, Tk) = query.shape, key.shape[1:3]
    if key.shape != (B, Hk, Tk, D) or value.shape != key.shape or H % max(Hk, 1):
        raise NotImplementedError(f"query {tuple(query.shape)} with key {tuple(key.shape)}, value {tuple(value.shape)}")
    if grad_out.shape != query.shape or out.shape != query.shape or logsumexp.shape != (B, H, Tq):
        raise NotImplementedError(f"query {tuple(query.shape)} with out {tuple(out.shape)}, {tuple(logsumexp.shape)}")
    GROUP = max(H, 1) // max(Hk, 1)
    grad_query, grad_key, grad_value = empty_like_bthd(query), empty_like_bthd(key), empty_like_bthd(value)
    inputs = (grad_out, query, key, value, out, logsumexp, attn_mask)
    sizes = (Tq, Tk, D, 1 / math.sqrt(max(D, 1)) if scale is None else scale)
    strides = (
        grad_out.stride(),
        query.stride(),
        key.stride(),
        value.stride(),
        out.stride(),
        logsumexp.stride(),
        () if attn_mask is None else attn_mask.expand(B, H, Tq, Tk).stride(),
    )
    BLOCK_D = max(triton.next_power_of_2(D), 16)
    BLOCK = 64 if BLOCK_D <= 32 else 32
    kernel_key_value[(triton.cdiv(Tk, BLOCK), B * Hk)](
        *inputs,
        grad_key,
        grad_value,
        Hk,
        GROUP,
        *sizes,
        *strides,
        grad_key.stride(),
        CAUSAL=is_causal,
        PRECISION="ieee" if query.dtype == torch.float32 else "tf32",
        BLOCK_M=BLOCK,
        BLOCK_N=BLOCK,
        BLOCK_D=BLOCK_D,
        num_warps=4,
    )
    kernel_query[(triton.cdiv(Tq, BLOCK), B * H)](
        *inputs,
        grad_query,
        H,
        GROUP,
        *sizes,
        *strides,
        grad_query.stride(),
        CAUSAL=is_causal,
        PRECISION="ieee" if query.dtype == torch.float32 else "tf32",
        BLOCK_M=BLOCK,
        BLOCK_N=BLOCK,
        BLOCK_D=BLOCK_D,
        num_warps=4,
    )
    return grad_query, grad_key, grad_value
