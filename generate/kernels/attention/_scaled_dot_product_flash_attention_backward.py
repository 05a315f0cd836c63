"""aten::_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor
    out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool
    is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key,
    Tensor grad_value)

Tiled backward of attention (arXiv:2205.14135, algorithm 4), no kernel with a T x T matrix in memory: delta is
rowsum(dO * O); a program owns BLOCK_N keys and passes over the queries for grad_key and grad_value, or BLOCK_M queries
and passes over the keys for grad_query. Probabilities are recomputed, P = exp(S - logsumexp), and so is what dropout
keeps, from the state of the generator that the forward call left in philox_seed (its file says how, and how a causal
mask lies); dS = P * (dP - delta). fp16 and bf16 are multiplied as they are and added up in fp32. Gradients lie as what
they are gradients of.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_scaled_dot_product_flash_attention_backward",)
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def load_rows(x_ptr, rows, cols, length, D, stride):
    """x[rows, :D] of one head, 0 outside. stride: of [B, H, T, D]."""
    mask = (rows < length)[:, None] & (cols < D)[None, :]
    return tl.load(x_ptr + rows[:, None] * stride[2] + cols[None, :] * stride[3], mask=mask, other=0.0)


@triton.jit
def kept(seed, offset, head, rows, start, Tq, Tk, limit, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Whether dropout keeps probabilities [rows, start : start + COLS] of a head; start is a multiple of 4."""
    group = start // 4 + tl.arange(0, COLS // 4)
    i = (head * Tq + rows)[:, None] * tl.cdiv(Tk, 4) + group[None, :]
    call = tl.zeros_like(i) + offset
    a, b, c, d = tl.philox(
        seed, call.to(tl.uint32), (call >> 32).to(tl.uint32), i.to(tl.uint32), (i >> 32).to(tl.uint32)
    )
    words = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [ROWS, COLS])
    return words.to(tl.int64) < limit


@triton.jit
def probabilities(q, k, rows, cols, Tq, Tk, scale, lse, CAUSAL, PRECISION):
    """exp(S - log_sumexp) of one tile [queries, keys] in fp32, 0 outside of the matrix and right of a causal mask."""
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    valid = (rows < Tq)[:, None] & (cols < Tk)[None, :]
    if CAUSAL:
        valid = valid & (rows[:, None] + (Tk - Tq) >= cols[None, :])
    return tl.where(valid, tl.exp(scores - lse[:, None]), 0.0)


@triton.jit
def kernel_delta(
    grad_ptr, out_ptr, delta_ptr, H, Tq, D, grad_stride, out_stride, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr
):
    """delta[b, h, t] = sum over d of grad * out."""
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    dims = tl.arange(0, BLOCK_D)
    grad_ptr += head // H * grad_stride[0] + head % H * grad_stride[1]
    out_ptr += head // H * out_stride[0] + head % H * out_stride[1]
    grad = load_rows(grad_ptr, rows, dims, Tq, D, grad_stride).to(tl.float32)
    out = load_rows(out_ptr, rows, dims, Tq, D, out_stride).to(tl.float32)
    tl.store(delta_ptr + head * Tq + rows, tl.sum(grad * out, 1), mask=rows < Tq)


@triton.jit(do_not_specialize=["limit"])
def kernel_key_value(
    grad_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    lse_ptr,
    delta_ptr,
    seed_ptr,
    offset_ptr,
    grad_k_ptr,
    grad_v_ptr,
    H,
    Tq,
    Tk,
    D,
    scale,
    keep_scale,
    limit: tl.int64,
    grad_stride,
    q_stride,
    k_stride,
    v_stride,
    lse_stride,
    grad_k_stride,
    grad_v_stride,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    b = head // H
    h = head % H
    q_ptr += b * q_stride[0] + h * q_stride[1]
    grad_ptr += b * grad_stride[0] + h * grad_stride[1]
    lse_ptr += b * lse_stride[0] + h * lse_stride[1]
    first = tl.program_id(0) * BLOCK_N
    cols = first.to(tl.int64) + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    k = load_rows(k_ptr + b * k_stride[0] + h * k_stride[1], cols, dims, Tk, D, k_stride)
    v = load_rows(v_ptr + b * v_stride[0] + h * v_stride[1], cols, dims, Tk, D, v_stride)
    grad_k = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    grad_v = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.maximum(first - (Tk - Tq), 0) // BLOCK_M * BLOCK_M
    for start in range(begin, Tq, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
        q = load_rows(q_ptr, rows, dims, Tq, D, q_stride)
        grad = load_rows(grad_ptr, rows, dims, Tq, D, grad_stride)
        lse = tl.load(lse_ptr + rows * lse_stride[2], mask=rows < Tq, other=float("inf"))
        delta = tl.load(delta_ptr + head * Tq + rows, mask=rows < Tq, other=0.0)
        p = probabilities(q, k, rows, cols, Tq, Tk, scale, lse, CAUSAL, PRECISION)
        grad_p = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
        used = p
        if DROPOUT:
            stays = kept(tl.load(seed_ptr), tl.load(offset_ptr), head, rows, first, Tq, Tk, limit, BLOCK_M, BLOCK_N)
            used = tl.where(stays, p * keep_scale, 0.0)
            grad_p = tl.where(stays, grad_p * keep_scale, 0.0)
        ds = p * (grad_p - delta[:, None])
        grad_v = tl.dot(tl.trans(used).to(grad.dtype), grad, grad_v, input_precision=PRECISION)
        grad_k = tl.dot(tl.trans(ds).to(q.dtype), q, grad_k, input_precision=PRECISION)
    at = (
        b * grad_k_stride[0]
        + h * grad_k_stride[1]
        + cols[:, None] * grad_k_stride[2]
        + dims[None, :] * grad_k_stride[3]
    )
    mask = (cols < Tk)[:, None]
    tl.store(grad_k_ptr + at, (grad_k * scale).to(grad_k_ptr.dtype.element_ty), mask=mask & (dims < D)[None, :])
    at = (
        b * grad_v_stride[0]
        + h * grad_v_stride[1]
        + cols[:, None] * grad_v_stride[2]
        + dims[None, :] * grad_v_stride[3]
    )
    tl.store(grad_v_ptr + at, grad_v.to(grad_v_ptr.dtype.element_ty), mask=mask & (dims < D)[None, :])


@triton.jit(do_not_specialize=["limit"])
def kernel_query(
    grad_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    lse_ptr,
    delta_ptr,
    seed_ptr,
    offset_ptr,
    grad_q_ptr,
    H,
    Tq,
    Tk,
    D,
    scale,
    keep_scale,
    limit: tl.int64,
    grad_stride,
    q_stride,
    k_stride,
    v_stride,
    lse_stride,
    grad_q_stride,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    b = head // H
    h = head % H
    k_ptr += b * k_stride[0] + h * k_stride[1]
    v_ptr += b * v_stride[0] + h * v_stride[1]
    lse_ptr += b * lse_stride[0] + h * lse_stride[1]
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    q = load_rows(q_ptr + b * q_stride[0] + h * q_stride[1], rows, dims, Tq, D, q_stride)
    grad = load_rows(grad_ptr + b * grad_stride[0] + h * grad_stride[1], rows, dims, Tq, D, grad_stride)
    lse = tl.load(lse_ptr + rows * lse_stride[2], mask=rows < Tq, other=float("inf"))
    delta = tl.load(delta_ptr + head * Tq + rows, mask=rows < Tq, other=0.0)
    grad_q = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    end = Tk
    if CAUSAL:
        end = tl.minimum(Tk, tl.maximum((tl.program_id(0) + 1) * BLOCK_M + (Tk - Tq), 0))
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k = load_rows(k_ptr, cols, dims, Tk, D, k_stride)
        v = load_rows(v_ptr, cols, dims, Tk, D, v_stride)
        p = probabilities(q, k, rows, cols, Tq, Tk, scale, lse, CAUSAL, PRECISION)
        grad_p = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
        if DROPOUT:
            stays = kept(tl.load(seed_ptr), tl.load(offset_ptr), head, rows, start, Tq, Tk, limit, BLOCK_M, BLOCK_N)
            grad_p = tl.where(stays, grad_p * keep_scale, 0.0)
        ds = p * (grad_p - delta[:, None])
        grad_q = tl.dot(ds.to(k.dtype), k, grad_q, input_precision=PRECISION)
    at = (
        b * grad_q_stride[0]
        + h * grad_q_stride[1]
        + rows[:, None] * grad_q_stride[2]
        + dims[None, :] * grad_q_stride[3]
    )
    mask = (rows < Tq)[:, None] & (dims < D)[None, :]
    tl.store(grad_q_ptr + at, (grad_q * scale).to(grad_q_ptr.dtype.element_ty), mask=mask)


def wrapper(
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    philox_seed,
    philox_offset,
    *,
    scale=None,
):
    (B, H, Tq, D), Tk = query.shape, key.shape[2]
    if key.shape != (B, H, Tk, D) or value.shape != key.shape:
        raise NotImplementedError(f"query {tuple(query.shape)} with key {tuple(key.shape)}, value {tuple(value.shape)}")
    if grad_out.shape != query.shape or out.shape != query.shape or logsumexp.shape != (B, H, Tq):
        raise RuntimeError(f"gradient {tuple(grad_out.shape)} of {tuple(out.shape)} with {tuple(logsumexp.shape)}")
    grad_query, grad_key, grad_value = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
    delta = torch.empty((B, H, Tq), dtype=torch.float32, device=query.device)
    seed, offset = (philox_seed, philox_offset) if philox_seed.dim() == 0 else philox_seed.unbind()
    BLOCK_D = max(triton.next_power_of_2(D), 16)
    BLOCK = 64 if BLOCK_D <= 64 and query.dtype != torch.float32 else 32
    precision = "ieee" if query.dtype == torch.float32 else "tf32"
    kernel_delta[(triton.cdiv(Tq, 64), B * H)](
        grad_out, out, delta, H, Tq, D, grad_out.stride(), out.stride(), BLOCK=64, BLOCK_D=BLOCK_D, num_warps=4
    )
    inputs = (grad_out, query, key, value, logsumexp, delta, seed, offset)
    sizes = (H, Tq, Tk, D, 1 / math.sqrt(max(D, 1)) if scale is None else scale)
    dropout = (1 / (1 - dropout_p) if dropout_p < 1 else 0.0, math.ceil((1 - dropout_p) * 4294967296.0))
    strides = (grad_out.stride(), query.stride(), key.stride(), value.stride(), logsumexp.stride())
    kernel_key_value[(triton.cdiv(Tk, BLOCK), B * H)](
        *inputs,
        grad_key,
        grad_value,
        *sizes,
        *dropout,
        *strides,
        grad_key.stride(),
        grad_value.stride(),
        CAUSAL=is_causal,
        DROPOUT=dropout_p > 0,
        PRECISION=precision,
        BLOCK_M=BLOCK,
        BLOCK_N=BLOCK,
        BLOCK_D=BLOCK_D,
        num_warps=4,
    )
    kernel_query[(triton.cdiv(Tq, BLOCK), B * H)](
        *inputs,
        grad_query,
        *sizes,
        *dropout,
        *strides,
        grad_query.stride(),
        CAUSAL=is_causal,
        DROPOUT=dropout_p > 0,
        PRECISION=precision,
        BLOCK_M=BLOCK,
        BLOCK_N=BLOCK,
        BLOCK_D=BLOCK_D,
        num_warps=4,
    )
    return grad_query, grad_key, grad_value
