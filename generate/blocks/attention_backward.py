"""Backward pass of attention (arXiv:2205.14135, algorithm 4), which never stores a T x T matrix in memory.

One kernel owns BLOCK keys per program instance and loops over the queries for the gradients of keys and values.
Another one owns BLOCK queries and loops over the keys for the query gradient. Both recompute the probabilities,
P = exp(S - logsumexp), and the dropout mask. Then dS = P * (dP - delta) with delta = rowsum(dO * O).

The product types, the causal mask and the sharing of key heads are as in `attention`.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.attention import (
    NARROW_HEAD,
    PHILOX_RANGE,
    SMALL_ATTENTION,
    attention_stride_arguments,
    attention_strides,
    head_of,
    kept_scores,
    load_rows,
    store_rows,
)
from blocks.offsets import integer_values, integers

FEW_FEATURES = 16  # heads with fewer features are multiplied in fp32 (see `attention_backward`)
SHARED_FEATURES = 256  # features up to which tiles of 32 rows fit shared memory


@triton.jit
def score_gradient(
    queries,
    keys,
    places,
    sizes,
    bias_ptr,
    bias_stride,
    scales,
    draw,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    PRECISION: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Return (P, dS) for one tile in fp32: P after dropout, and the gradient of the scores.

    Both are 0 outside the matrix and for keys that the causal mask hides.

    Parameters:
        queries: q and grad tiles, and the rows' logsumexp and delta.
        keys: k and v tiles.
        places: Head, rows, cols, and the first col.
        sizes: Tq, Tk.
        bias_ptr, bias_stride: This head's bias, or None.
        scales: Score scale, and 1 / (1 - dropout_p).
        draw: Pointers to the seed and the offset, and the dropout threshold.
    """
    q, grad, lse, delta = queries
    k, v = keys
    head, rows, cols, start = places
    Tq, Tk = sizes
    scale, keep_scale = scales
    shift = 0
    if CAUSAL == "lower":
        shift = Tk - Tq
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    valid = (rows >= 0)[:, None] if EVEN else (rows < Tq)[:, None] & (cols < Tk)[None, :]
    if bias_ptr is not None:
        at = rows[:, None] * bias_stride[2] + cols[None, :] * bias_stride[3]
        scores += tl.load(bias_ptr + at, mask=valid, other=0.0).to(tl.float32)
    if CAUSAL is not None:
        valid = valid & (rows[:, None] + shift >= cols[None, :])
    p = tl.where(valid, tl.exp(scores - lse[:, None]), 0.0)
    grad_p = tl.dot(grad, tl.trans(v), input_precision=PRECISION)
    # dropout changes P @ V, but the softmax gradient needs P itself
    used = p
    if DROPOUT:
        seed, offset = tl.load(draw[0]), tl.load(draw[1])
        stays = kept_scores(seed, offset, head, rows, start, Tq, Tk, draw[2], rows.shape[0], cols.shape[0])
        used = tl.where(stays, p * keep_scale, 0.0)
        grad_p = tl.where(stays, grad_p * keep_scale, 0.0)
    return used, p * (grad_p - delta[:, None])


@triton.jit
def delta_kernel(grad_ptr, out_ptr, delta_ptr, sizes, strides, TILE: tl.constexpr, PLAIN: tl.constexpr):
    """Compute delta[b, h, t] = sum over d of grad * out.

    Args:
        grad_ptr: [B, H, Tq, Dv], read.
        out_ptr: [B, H, Tq, Dv], read.
        delta_ptr: [B, H, Tq] fp32, contiguous, written.
        sizes: H, Tq, Dv.
        strides: Strides of grad and out, from `attention_stride_arguments`.
        TILE: Tile rows and columns.
        PLAIN: Integers are encoded by `plain`, and strides for `stride_values`.
    """
    H, Tq, Dv = integer_values(sizes, PLAIN)
    grad_stride, out_stride = attention_strides(strides, PLAIN)
    head = tl.program_id(1).to(tl.int64)
    rows, dims = tl.program_id(0).to(tl.int64) * TILE[0] + tl.arange(0, TILE[0]), tl.arange(0, TILE[1])
    grad_ptr = head_of(grad_ptr, head // H, head % H, grad_stride)
    out_ptr = head_of(out_ptr, head // H, head % H, out_stride)
    grad = load_rows(grad_ptr, rows, dims, Tq, Dv, grad_stride, True, False, True)
    out = load_rows(out_ptr, rows, dims, Tq, Dv, out_stride, True, False, True)
    tl.store(delta_ptr + head * Tq + rows, tl.sum(grad * out, 1), mask=rows < Tq)


@triton.jit(do_not_specialize=["limit"])
def key_value_kernel(
    inputs,
    outs,
    state,
    sizes,
    strides,
    scale,
    keep_scale,
    limit: tl.int64,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    FP32: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Compute one tile's key and value gradients, summed over the GROUP query heads that share it.

    A causal mask lets the loop start at the first query that sees the tile.

    Args:
        inputs: Pointers to grad [B, H, Tq, Dv], q [B, H, Tq, D], k [B, H / GROUP, Tk, D], v [B, H / GROUP, Tk,
            Dv], bias [B, H, Tq, Tk] (or None), logsumexp [B, H, rows] and delta [B, H, Tq], read.
        outs: Pointers to the gradients of k and v, written.
        state: Pointers to the dropout seed and offset, read.
        sizes: H, Tq, Tk, D, Dv.
        strides: Strides of `inputs` (without delta) and `outs`, from `attention_stride_arguments`.
        scale: Score scale.
        keep_scale: 1 / (1 - dropout_p).
        limit: Dropout threshold, scaled by 2^32.
        GROUP: Query heads that share one key and value head.
        CAUSAL: None, "upper" or "lower" (see `blocks.attention`).
        DROPOUT: Drop probabilities.
        FP32: Convert the operands to fp32 before they are multiplied.
        EVEN: No tile reaches beyond Tq, Tk, D or Dv, so that nothing is masked.
        BLOCK: Keys and queries per tile.
        BLOCK_D: Padded features.
        PLAIN: Integers are encoded by `plain`, and strides for `stride_values`.
    """
    H, Tq, Tk, D, Dv = integer_values(sizes, PLAIN)
    strides = attention_strides(strides, PLAIN)
    grad_ptr, q_ptr, k_ptr, v_ptr, bias_ptr, lse_ptr, delta_ptr = inputs
    PRECISION: tl.constexpr = "ieee" if FP32 or k_ptr.dtype.element_ty == tl.float32 else "tf32"
    shared = tl.program_id(1).to(tl.int64)
    b, hk = shared // (H // GROUP), shared % (H // GROUP)
    first = tl.program_id(0) * BLOCK
    cols, dims = first.to(tl.int64) + tl.arange(0, BLOCK), tl.arange(0, BLOCK_D)
    k = load_rows(head_of(k_ptr, b, hk, strides[2]), cols, dims, Tk, D, strides[2], not EVEN, EVEN, FP32)
    v = load_rows(head_of(v_ptr, b, hk, strides[3]), cols, dims, Tk, Dv, strides[3], not EVEN, EVEN, FP32)
    grad_k = tl.zeros([BLOCK, BLOCK_D], tl.float32)
    grad_v = tl.zeros([BLOCK, BLOCK_D], tl.float32)
    begin = 0
    if CAUSAL == "lower":
        # a multiple of BLOCK, so that with EVEN no tile reaches beyond Tq
        begin = tl.maximum(first - (Tk - Tq), 0) // BLOCK * BLOCK
    elif CAUSAL == "upper":
        begin = first
    # The heads that share a key head are summed here, in a fixed order, so that no atomics are needed.
    for member in range(GROUP):
        h = hk * GROUP + member
        lse_head = head_of(lse_ptr, b, h, strides[5])
        bias_head = bias_ptr
        if bias_ptr is not None:
            bias_head = head_of(bias_ptr, b, h, strides[4])
        for start in range(begin, Tq, BLOCK):
            rows = start + tl.arange(0, BLOCK).to(tl.int64)
            q = load_rows(head_of(q_ptr, b, h, strides[1]), rows, dims, Tq, D, strides[1], not EVEN, EVEN, FP32)
            grad = load_rows(head_of(grad_ptr, b, h, strides[0]), rows, dims, Tq, Dv, strides[0], not EVEN, EVEN, FP32)
            # infinity, so that P is 0 in rows beyond Tq
            lse = tl.load(lse_head + rows * strides[5][2], mask=rows < Tq, other=float("inf"))
            delta = tl.load(delta_ptr + (b * H + h) * Tq + rows, mask=rows < Tq, other=0.0)
            p, ds = score_gradient(
                (q, grad, lse, delta),
                (k, v),
                (b * H + h, rows, cols, first),
                (Tq, Tk),
                bias_head,
                strides[4],
                (scale, keep_scale),
                (state[0], state[1], limit),
                CAUSAL,
                DROPOUT,
                PRECISION,
                EVEN,
            )
            grad_v = tl.dot(tl.trans(p).to(grad.dtype), grad, grad_v, input_precision=PRECISION)
            grad_k = tl.dot(tl.trans(ds).to(q.dtype), q, grad_k, input_precision=PRECISION)
    store_rows(head_of(outs[0], b, hk, strides[6]), cols, dims, Tk, D, strides[6], grad_k * scale)
    store_rows(head_of(outs[1], b, hk, strides[7]), cols, dims, Tk, Dv, strides[7], grad_v)


@triton.jit(do_not_specialize=["limit"])
def query_kernel(
    inputs,
    outs,
    state,
    sizes,
    strides,
    scale,
    keep_scale,
    limit: tl.int64,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    FP32: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Compute one query tile's gradient, and optionally the bias gradient.

    A causal mask ends the loop at the last visible key, unless the bias gradient is needed: its masked elements
    must be written as 0.

    Args:
        inputs: As in `key_value_kernel`, read.
        outs: Pointers to the gradients of q and the bias (or None), written.
        state: Pointers to the dropout seed and offset, read.
        sizes: H, Tq, Tk, D, Dv.
        strides: Strides of `inputs` (without delta) and `outs`, from `attention_stride_arguments`.
        scale: Score scale.
        keep_scale: 1 / (1 - dropout_p).
        limit: Dropout threshold, scaled by 2^32.
        GROUP: Query heads that share one key and value head.
        CAUSAL: None, "upper" or "lower" (see `blocks.attention`).
        DROPOUT: Drop probabilities.
        FP32: Convert the operands to fp32 before they are multiplied.
        EVEN: No tile reaches beyond Tq, Tk, D or Dv, so that nothing is masked.
        BLOCK: Queries and keys per tile.
        BLOCK_D: Padded features.
        PLAIN: Integers are encoded by `plain`, and strides for `stride_values`.
    """
    H, Tq, Tk, D, Dv = integer_values(sizes, PLAIN)
    strides = attention_strides(strides, PLAIN)
    grad_ptr, q_ptr, k_ptr, v_ptr, bias_ptr, lse_ptr, delta_ptr = inputs
    PRECISION: tl.constexpr = "ieee" if FP32 or k_ptr.dtype.element_ty == tl.float32 else "tf32"
    head = tl.program_id(1).to(tl.int64)
    b, h = head // H, head % H
    k_ptr, v_ptr = head_of(k_ptr, b, h // GROUP, strides[2]), head_of(v_ptr, b, h // GROUP, strides[3])
    lse_ptr = head_of(lse_ptr, b, h, strides[5])
    if bias_ptr is not None:
        bias_ptr = head_of(bias_ptr, b, h, strides[4])
    rows, dims = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK_D)
    q = load_rows(head_of(q_ptr, b, h, strides[1]), rows, dims, Tq, D, strides[1], not EVEN, EVEN, FP32)
    grad = load_rows(head_of(grad_ptr, b, h, strides[0]), rows, dims, Tq, Dv, strides[0], not EVEN, EVEN, FP32)
    lse = tl.load(lse_ptr + rows * strides[5][2], mask=rows < Tq, other=float("inf"))
    delta = tl.load(delta_ptr + head * Tq + rows, mask=rows < Tq, other=0.0)
    grad_q = tl.zeros([BLOCK, BLOCK_D], tl.float32)
    end, shift = Tk, 0
    if CAUSAL == "lower":
        shift = Tk - Tq
    if CAUSAL is not None and outs[1] is None:  # keys from `end` on are hidden from the whole tile
        end = tl.minimum(Tk, tl.maximum((tl.program_id(0) + 1) * BLOCK + shift, 0))
    for start in range(0, end, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        k = load_rows(k_ptr, cols, dims, Tk, D, strides[2], not EVEN, EVEN, FP32)
        v = load_rows(v_ptr, cols, dims, Tk, Dv, strides[3], not EVEN, EVEN, FP32)
        _, ds = score_gradient(
            (q, grad, lse, delta),
            (k, v),
            (head, rows, cols, start),
            (Tq, Tk),
            bias_ptr,
            strides[4],
            (scale, keep_scale),
            (state[0], state[1], limit),
            CAUSAL,
            DROPOUT,
            PRECISION,
            EVEN,
        )
        grad_q = tl.dot(ds.to(k.dtype), k, grad_q, input_precision=PRECISION)
        if outs[1] is not None:
            store_rows(head_of(outs[1], b, h, strides[7]), rows, cols, Tq, Tk, strides[7], ds)
    store_rows(head_of(outs[0], b, h, strides[6]), rows, dims, Tq, D, strides[6], grad_q * scale)


def empty_like_bthd(x):
    """Return a new [B, H, T, D] tensor whose memory order is [B, T, H, D]."""
    B, H, T, D = x.shape
    return torch.empty((B, T, H, D), dtype=x.dtype, device=x.device).transpose(1, 2)


def backward_block(query, value):
    """Return the tile size (queries and keys) that fits the registers and, beyond 256 features, shared memory."""
    D = max(query.shape[3], value.shape[3])
    if D > SHARED_FEATURES:
        return 16
    return 64 if D <= NARROW_HEAD and query.dtype != torch.float32 else 32


def attention_backward(inputs, grads, state, causal, dropout_p, scale, block, fp32=False):
    """Compute attention gradients into `grads`.

    Heads with fewer than FEW_FEATURES features are always multiplied in fp32. With so few summands, the rounding errors
    of a 16-bit dS do not average out.

    Args:
        inputs: Output gradient, query, key, value, bias or None, output, logsumexp.
        grads: Tensors for the gradients of query, key, value and bias; the last may be None.
        state: Tensors with the forward call's seed and offset.
        causal: As in `attention`.
        dropout_p: As in `attention`.
        scale: Score scale, or None for 1 / sqrt(D).
        block: Queries and keys per tile, from `backward_block`.
        fp32: Multiply in fp32.

    Raises:
        RuntimeError: If the gradient, output and logsumexp shapes do not fit.
    """
    grad, query, key, value, bias, out, lse = inputs
    (B, H, Tq, D), (Hk, Tk), Dv = query.shape, key.shape[1:3], value.shape[3]
    if grad.shape != (B, H, Tq, Dv) or out.shape != grad.shape or lse.shape[:2] != (B, H) or lse.shape[2] < Tq:
        raise RuntimeError(
            f"gradient {tuple(grad.shape)} does not match output {tuple(out.shape)} and logsumexp {tuple(lse.shape)}"
        )
    delta = torch.empty((B, H, Tq), dtype=torch.float32, device=query.device)
    BLOCK_D = max(triton.next_power_of_2(max(D, Dv)), 16)
    small = max(query.numel(), key.numel(), value.numel()) < SMALL_ATTENTION
    delta_kernel[(triton.cdiv(Tq, 64), B * H)](
        grad,
        out,
        delta,
        integers((H, Tq, Dv), small),
        attention_stride_arguments((grad, out), small),
        TILE=(64, BLOCK_D),
        PLAIN=small,
        num_warps=4,
    )
    bias = None if bias is None else bias.expand(B, H, Tq, Tk)
    even = Tq % block == Tk % block == 0 and D == Dv == BLOCK_D
    causal = "upper" if causal == "lower" and Tq == Tk else causal
    for kernel, length, heads, outs in ((key_value_kernel, Tk, Hk, grads[1:3]), (query_kernel, Tq, H, grads[::3])):
        kernel[(triton.cdiv(length, block), B * heads)](
            (grad, query, key, value, bias, lse, delta),
            outs,
            state,
            integers((H, Tq, Tk, D, Dv), small),
            attention_stride_arguments((grad, query, key, value, bias, lse, *outs), small),
            1 / math.sqrt(max(D, 1)) if scale is None else scale,
            1 / (1 - dropout_p) if dropout_p < 1 else 0.0,
            math.ceil((1 - dropout_p) * PHILOX_RANGE),
            GROUP=max(H, 1) // max(Hk, 1),
            CAUSAL=causal,
            DROPOUT=dropout_p > 0,
            FP32=fp32 or min(D, Dv) < FEW_FEATURES,
            EVEN=even,
            BLOCK=block,
            BLOCK_D=BLOCK_D,
            PLAIN=small,
            num_warps=4,
            num_stages=1 if query.dtype.itemsize == 2 else 3,
        )
