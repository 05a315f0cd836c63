"""aten::_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool
    compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor
    log_sumexp, Tensor philox_seed, Tensor philox_offset)
aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool
    compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) ->
    (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor
    philox_seed, Tensor philox_offset, Tensor debug_attn_mask)

Tiled attention with online softmax (arXiv:2205.14135): a program owns BLOCK_M queries of one head and passes over its
keys and values BLOCK_N at a time, so no T x T matrix is ever in memory. fp16 and bf16 are multiplied as they are and
added up in fp32. Dropout keeps probability [row, col] of head bh where word col % 4 of Philox at counter
(offset, (bh * Tq + row) * ceil(Tk / 4) + col // 4), as a fraction of 2^32, is less than 1 - dropout_p; backward draws
the same from the returned seed and offset. The output lies as [B, T, H, D]; log_sumexp of the first overload is
[B, H, T rounded up to 32] with infinity behind T, of the second [B, H, T, 1].
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention")
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


@triton.jit(do_not_specialize=["limit", "seed", "offset"])
def kernel_attention(
    q_ptr,
    k_ptr,
    v_ptr,
    bias_ptr,
    out_ptr,
    lse_ptr,
    seed_ptr,
    offset_ptr,
    H,
    Tq,
    Tk,
    D,
    Dv,
    lse_rows,
    scale,
    keep_scale,
    limit: tl.int64,
    seed: tl.int64,
    offset: tl.int64,
    q_stride,
    k_stride,
    v_stride,
    bias_stride,
    out_stride,
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
    k_ptr += b * k_stride[0] + h * k_stride[1]
    v_ptr += b * v_stride[0] + h * v_stride[1]
    out_ptr += b * out_stride[0] + h * out_stride[1]
    if bias_ptr is not None:
        bias_ptr += b * bias_stride[0] + h * bias_stride[1]
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
        v = load_rows(v_ptr, cols, dims, Tk, Dv, v_stride)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        valid = (rows < Tq)[:, None] & (cols < Tk)[None, :]
        if bias_ptr is not None:
            at = rows[:, None] * bias_stride[2] + cols[None, :] * bias_stride[3]
            scores += tl.load(bias_ptr + at, mask=valid, other=0.0).to(tl.float32)
        if CAUSAL:
            valid = valid & (rows[:, None] >= cols[None, :])
        scores = tl.where(valid, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        finite = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        p = tl.exp(scores - finite[:, None])
        shrink = tl.exp(peak - finite)
        total = total * shrink + tl.sum(p, 1)
        if DROPOUT:
            p = tl.where(kept(seed, offset, head, rows, start, Tq, Tk, limit, BLOCK_M, BLOCK_N), p, 0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    lse = tl.where(total == 0, float("inf"), peak + tl.log(total))
    out = acc * (keep_scale / tl.where(total == 0, 1.0, total))[:, None]
    at = rows[:, None] * out_stride[2] + dims[None, :] * out_stride[3]
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=(rows < Tq)[:, None] & (dims < Dv)[None, :])
    if lse_ptr is not None:
        lse = tl.where(rows < Tq, lse, float("inf"))
        tl.store(lse_ptr + head * lse_rows + rows, lse, mask=rows < lse_rows)
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
        tl.store(seed_ptr, seed)
        tl.store(offset_ptr, offset)


def blocks(D, dtype):
    """BLOCK_M, BLOCK_N and warps that fit the registers."""
    if dtype == torch.float32:
        return (64, 32, 4) if D <= 64 else (32, 32, 4)
    return (128, 64, 4) if D <= 64 else (64, 64, 4)


def wrapper(
    query,
    key,
    value,
    attn_bias,
    compute_log_sumexp,
    dropout_p=0.0,
    is_causal=False,
    return_debug_mask=None,
    *,
    scale=None,
    philox,
):
    B, H, Tq, D = query.shape
    Tk, Dv = key.shape[2], value.shape[3]
    efficient = return_debug_mask is None
    device = query.device
    out = torch.empty((B, Tq, H, Dv), dtype=query.dtype, device=device).transpose(1, 2)
    rows = triton.cdiv(Tq, 32) * 32 if efficient else Tq
    shape = (B, H, rows if compute_log_sumexp or not efficient else 0)
    lse = torch.empty(shape, dtype=torch.float32, device=device)
    seed_out = torch.empty((), dtype=torch.int64, device=device)
    offset_out = torch.empty((), dtype=torch.int64, device=device)
    seed, offset = philox if dropout_p > 0 else (0, 0)
    BLOCK_D = max(triton.next_power_of_2(max(D, Dv)), 16)
    BLOCK_M, BLOCK_N, warps = blocks(BLOCK_D, query.dtype)
    BLOCK_M = min(BLOCK_M, max(triton.next_power_of_2(Tq), 32))
    BLOCK_N = min(BLOCK_N, max(triton.next_power_of_2(Tk), 32))
    kernel_attention[(triton.cdiv(rows, BLOCK_M), B * H)](
        query,
        key,
        value,
        attn_bias,
        out,
        lse if lse.numel() else None,
        seed_out,
        offset_out,
        H,
        Tq,
        Tk,
        D,
        Dv,
        rows,
        1 / math.sqrt(D) if scale is None else scale,
        1 / (1 - dropout_p) if dropout_p < 1 else 0.0,
        math.ceil((1 - dropout_p) * 4294967296.0),
        seed,
        offset,
        query.stride(),
        key.stride(),
        value.stride(),
        () if attn_bias is None else attn_bias.expand(B, H, Tq, Tk).stride(),
        out.stride(),
        CAUSAL=is_causal,
        DROPOUT=dropout_p > 0,
        PRECISION="ieee" if query.dtype == torch.float32 else "tf32",
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=BLOCK_D,
        num_warps=warps,
    )
    if efficient:
        return out, lse, seed_out, offset_out
    return out, lse.unsqueeze(3), None, None, Tq, Tk, seed_out, offset_out, None
