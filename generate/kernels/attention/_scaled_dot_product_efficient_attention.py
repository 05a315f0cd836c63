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
the same from the returned seed and offset. The first overload's output lies as [B, T, H, D] and its log_sumexp is
[B, H, T rounded up to 32] with infinity behind T; the second's lies as query does, and its log_sumexp is [B, H, T, 1].
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention")
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def load_rows(x_ptr, rows, dims, length, D, stride, MASKED: tl.constexpr, WHOLE: tl.constexpr):
    """x[rows, :D] of one head; 0 from row `length` on if MASKED, from column D on unless WHOLE. stride: of 4 dims."""
    x_ptr += rows.to(tl.int64)[:, None] * stride[2] + dims[None, :] * stride[3]
    if MASKED:
        return tl.load(x_ptr, mask=(rows < length)[:, None] & (dims < D)[None, :], other=0.0)
    if WHOLE:
        return tl.load(x_ptr)
    return tl.load(x_ptr, mask=(dims < D)[None, :], other=0.0)


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
def attend(
    q,
    peak,
    total,
    acc,
    k_ptr,
    v_ptr,
    bias_ptr,
    first,
    last,
    head,
    row,
    sizes,
    scale,
    draw,
    k_stride,
    v_stride,
    bias_stride,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
    WHOLE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """(peak, total, acc) of queries `row` and on after the keys from first to last. Scores are in units of log 2; only
    where MASKED may some of them not count. sizes: Tq, Tk, D, Dv; draw: seed, offset, limit."""
    Tq, Tk, D, Dv = sizes
    seed, offset, limit = draw
    m, n, dims = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    rows = row.to(tl.int64) + m
    k_step, v_step = tl.zeros([], tl.int64) + k_stride[2], tl.zeros([], tl.int64) + v_stride[2]
    for start in range(first, last, BLOCK_N):
        k = load_rows(k_ptr + start * k_step, n, dims, Tk - start, D, k_stride, MASKED, WHOLE)
        v = load_rows(v_ptr + start * v_step, n, dims, Tk - start, Dv, v_stride, MASKED, WHOLE)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (scale * 1.4426950408889634)
        if bias_ptr is not None:
            cols = start + n.to(tl.int64)
            at = rows[:, None] * bias_stride[2] + cols[None, :] * bias_stride[3]
            inside = (rows < Tq)[:, None] & (cols < Tk)[None, :]
            scores += tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32) * 1.4426950408889634
        if MASKED:
            valid = (n < Tk - start)[None, :]
            if CAUSAL:
                valid = valid & ((row - start + m)[:, None] >= n[None, :])
            scores = tl.where(valid, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        finite = new_peak
        if bias_ptr is not None:  # which may leave a query nothing
            finite = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        p = tl.exp2(scores - finite[:, None])
        shrink = tl.exp2(peak - finite)
        total = total * shrink + tl.sum(p, 1)
        if DROPOUT:
            p = tl.where(kept(seed, offset, head, rows, start, Tq, Tk, limit, BLOCK_M, BLOCK_N), p, 0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


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
    WHOLE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """WHOLE: D and Dv are BLOCK_D. Tiles with the most keys before them run first."""
    head = tl.program_id(1).to(tl.int64)
    b = head // H
    h = head % H
    q_ptr += b * q_stride[0] + h * q_stride[1]
    k_ptr += b * k_stride[0] + h * k_stride[1]
    v_ptr += b * v_stride[0] + h * v_stride[1]
    out_ptr += b * out_stride[0] + h * out_stride[1]
    if bias_ptr is not None:
        bias_ptr += b * bias_stride[0] + h * bias_stride[1]
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    rows = row.to(tl.int64) + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    q = load_rows(q_ptr, rows, dims, Tq, D, q_stride, True, WHOLE)
    peak = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    end = Tk
    full = Tk // BLOCK_N * BLOCK_N
    if CAUSAL:
        end = tl.minimum(Tk, row + BLOCK_M)
        full = tl.minimum(full, (row + 1) // BLOCK_N * BLOCK_N)
    for masked in tl.static_range(2):
        peak, total, acc = attend(
            q,
            peak,
            total,
            acc,
            k_ptr,
            v_ptr,
            bias_ptr,
            full if masked else 0,
            end if masked else full,
            head,
            row,
            (Tq, Tk, D, Dv),
            scale,
            (seed, offset, limit),
            k_stride,
            v_stride,
            bias_stride,
            masked == 1,
            CAUSAL,
            DROPOUT,
            PRECISION,
            WHOLE,
            BLOCK_M,
            BLOCK_N,
            BLOCK_D,
        )
    lse = tl.where(total == 0, float("inf"), (peak + tl.log2(total)) * 0.6931471805599453)
    out = acc * (keep_scale / tl.where(total == 0, 1.0, total))[:, None]
    at = rows[:, None] * out_stride[2] + dims[None, :] * out_stride[3]
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=(rows < Tq)[:, None] & (dims < Dv)[None, :])
    if lse_ptr is not None:
        lse = tl.where(rows < Tq, lse, float("inf"))
        tl.store(lse_ptr + head * lse_rows + rows, lse, mask=rows < lse_rows)
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
        tl.store(seed_ptr, seed)
        tl.store(offset_ptr, offset)


def blocks(D, T, dtype):
    """BLOCK_M, BLOCK_N, warps and stages that fit the registers; of small tiles less is masked, as few queries want."""
    if dtype == torch.float32:
        return 32, 32, 4, 2
    if D > 64 or T <= 512:
        return 64, 64, 4, 2
    return 128, 64, 8, 3


def empty_as(query, Dv):
    """New [B, H, T, Dv] tensor whose dimensions lie in the order of query's."""
    B, H, T, D = query.shape
    if Dv == D:
        return torch.empty_like(query)
    order = sorted([(-stride, dim) for dim, stride in enumerate(query.stride())])
    return torch.empty_permuted((B, H, T, Dv), [dim for _, dim in order], dtype=query.dtype, device=query.device)


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
    if key.shape != (B, H, Tk, D) or value.shape != (B, H, Tk, Dv):
        raise NotImplementedError(f"query {tuple(query.shape)} with key {tuple(key.shape)}, value {tuple(value.shape)}")
    efficient = return_debug_mask is None
    device = query.device
    if efficient:
        out = torch.empty((B, Tq, H, Dv), dtype=query.dtype, device=device).transpose(1, 2)
    else:
        out = empty_as(query, Dv)
    rows = triton.cdiv(Tq, 32) * 32 if efficient else Tq
    shape = (B, H, rows if compute_log_sumexp or not efficient else 0)
    lse = torch.empty(shape, dtype=torch.float32, device=device)
    seed_out = torch.empty((), dtype=torch.int64, device=device)
    offset_out = torch.empty((), dtype=torch.int64, device=device)
    seed, offset = philox if dropout_p > 0 else (0, 0)
    BLOCK_D = max(triton.next_power_of_2(max(D, Dv)), 16)
    BLOCK_M, BLOCK_N, warps, stages = blocks(BLOCK_D, Tq, query.dtype)
    BLOCK_M = min(BLOCK_M, max(triton.next_power_of_2(Tq), 32))
    BLOCK_N = min(BLOCK_N, max(triton.next_power_of_2(Tk), 32))
    kernel_attention[(max(triton.cdiv(rows, BLOCK_M), 1), max(B * H, 1))](
        query,
        key,
        value,
        attn_bias,
        out,
        lse if lse.numel() else None,
        seed_out,
        offset_out,
        max(H, 1),
        Tq if B * H else 0,
        Tk if B * H else 0,
        D,
        Dv,
        rows if B * H else 0,
        1 / math.sqrt(max(D, 1)) if scale is None else scale,
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
        WHOLE=D == Dv == BLOCK_D,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=BLOCK_D,
        num_warps=warps,
        num_stages=stages,
    )
    if efficient:
        return out, lse, seed_out, offset_out
    return out, lse.unsqueeze(3), None, None, Tq, Tk, seed_out, offset_out, None
