"""Tiled attention with online softmax (arXiv:2205.14135), which never stores a T x T matrix in memory.

A program instance owns BLOCK_M queries in one head and loops over the keys and values in BLOCK_N tiles.
Tensors are [B, H, T, D] with arbitrary strides. GROUP consecutive query heads share one key and value head.

fp16 and bf16 operands are multiplied as they are and accumulated in fp32. With FP32 set they are multiplied as
tf32, which represents them exactly, and so are the probabilities.

CAUSAL "upper" lets query i see the keys up to i. "lower" lets it see the keys up to i + Tk - Tq, so that the
mask ends in the lower right corner. None disables the mask.

Dropout keeps the probability [row, col] in head bh if a Philox word, as a fraction of 2^32, is less than 1 -
dropout_p. The word is number col % 4 at the counter (offset, (bh * Tq + row) * ceil(Tk / 4) + col // 4). The
backward pass draws the same words from the seed and offset that the forward pass stores.
"""

import math

import torch
import triton
import triton.language as tl
from blocks.offsets import integer_values, integers, stride_arguments, stride_values

# Number of elements in the largest operand below which integers are encoded: fewer kernel variants to compile
# matter more than vectorized loads, as in SMALL_TENSOR.
SMALL_ATTENTION = 4096

PHILOX_RANGE = 4294967296.0  # 2^32, the number of values of a Philox word, to which dropout compares a probability
NARROW_HEAD = 64  # features per head up to which larger tiles fit the registers
FEW_QUERIES = 512  # queries up to which tiles are smaller, because less of a small tile is masked
ONE_LOOP_KEYS = 1024  # keys up to which a causal mask gets one loop; few of its tiles would need no mask


def attention_stride_arguments(tensors, small):
    """Return the strides as launch arguments, with () for a tensor that is None."""
    return tuple([() if x is None else stride_arguments(x.stride(), small) for x in tensors])


@triton.jit
def attention_strides(strides, PLAIN: tl.constexpr):
    """Return the strides of all tensors, decoded from `attention_stride_arguments`."""
    values = ()
    for k in tl.static_range(len(strides)):
        values = values + (stride_values(strides[k], PLAIN),)
    return values


@triton.jit
def load_rows(x_ptr, rows, dims, length, D, stride, MASKED: tl.constexpr, WHOLE: tl.constexpr, FP32: tl.constexpr):
    """Load x[rows, :D] from one head, as fp32 if FP32.

    Rows from `length` on are 0 if MASKED, and columns from D on are 0 if MASKED or unless WHOLE. `stride` has 4
    dimensions.
    """
    x_ptr += rows.to(tl.int64)[:, None] * stride[2] + dims[None, :] * stride[3]
    if MASKED:
        x = tl.load(x_ptr, mask=(rows < length)[:, None] & (dims < D)[None, :], other=0.0)
    elif WHOLE:
        x = tl.load(x_ptr)
    else:
        x = tl.load(x_ptr, mask=(dims < D)[None, :], other=0.0)
    return x.to(tl.float32) if FP32 else x


@triton.jit
def store_rows(x_ptr, rows, dims, length, D, stride, values):
    """Store a tile to x[rows, :D] in one head, masked at row `length` and at column D."""
    x_ptr += rows[:, None] * stride[2] + dims[None, :] * stride[3]
    tl.store(x_ptr, values.to(x_ptr.dtype.element_ty), mask=(rows < length)[:, None] & (dims < D)[None, :])


@triton.jit
def head_of(x_ptr, b, h, stride):
    """Return the pointer to head h in batch b."""
    return x_ptr + b * stride[0] + h * stride[1]


@triton.jit
def kept_scores(seed, offset, head, rows, start, Tq, Tk, limit, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Return True for the probabilities [rows, start : start + COLS] in a head that dropout keeps.

    `start` is a multiple of 4, because each Philox call yields the words for four columns.
    """
    group = start // 4 + tl.arange(0, COLS // 4)
    # int64: the call number counts groups in the whole [B, H, Tq, Tk] matrix
    i = (head * Tq + rows)[:, None] * tl.cdiv(Tk, 4) + group[None, :]
    call = tl.zeros_like(i) + offset
    a, b, c, d = tl.philox(
        seed, call.to(tl.uint32), (call >> 32).to(tl.uint32), i.to(tl.uint32), (i >> 32).to(tl.uint32)
    )
    # the innermost join varies slowest, so that the order of the columns is a, b, c, d
    words = tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [ROWS, COLS])
    return words.to(tl.int64) < limit


@triton.jit
def attend(
    q,
    sums,
    heads,
    bias_ptr,
    first,
    last,
    head,
    row,
    shift,
    sizes,
    strides,
    scale,
    draw,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    FP32: tl.constexpr,
    WHOLE: tl.constexpr,
    EVEN: tl.constexpr,
    TILE: tl.constexpr,
):
    """Update one query tile's online softmax state with the keys from `first` to `last`.

    Scores are scaled by log2(e), so that exp2 replaces exp. The mask is only applied if MASKED; without it
    every key in the range must be valid.

    Parameters:
        q: Query tile.
        sums: Peak [BLOCK_M], total [BLOCK_M] and acc [BLOCK_M, BLOCK_D], fp32: the running maximum, the running
            sum of exponentials, and the unnormalized output.
        heads, bias_ptr: Pointers to this head's keys, values and bias (or None).
        first, last: Range of keys.
        head, row: Index b * H + h, and the tile's first query.
        shift: Tk - Tq for CAUSAL "lower", else 0.
        sizes, strides: Tq, Tk, D, Dv, and the decoded strides for q, k, v and bias.
        scale, draw: Score scale, and (seed, offset, limit) for dropout.

    Returns the updated `sums`.
    """
    peak, total, acc = sums
    k_ptr, v_ptr = heads
    Tq, Tk, D, Dv = sizes
    _, k_stride, v_stride, bias_stride = strides
    PRECISION: tl.constexpr = "ieee" if k_ptr.dtype.element_ty == tl.float32 else "tf32"
    m, n, dims = tl.arange(0, TILE[0]), tl.arange(0, TILE[1]), tl.arange(0, TILE[2])
    rows = row.to(tl.int64) + m
    # int64, because start * stride may exceed 32 bits
    k_step, v_step = tl.zeros([], tl.int64) + k_stride[2], tl.zeros([], tl.int64) + v_stride[2]
    for start in range(first, last, TILE[1]):
        k = load_rows(k_ptr + start * k_step, n, dims, Tk - start, D, k_stride, MASKED and not EVEN, WHOLE, FP32)
        v = load_rows(v_ptr + start * v_step, n, dims, Tk - start, Dv, v_stride, MASKED and not EVEN, WHOLE, FP32)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (scale * 1.4426950408889634)
        if bias_ptr is not None:
            cols = start + n.to(tl.int64)
            at = rows[:, None] * bias_stride[2] + cols[None, :] * bias_stride[3]
            inside = (rows < Tq)[:, None] & (cols < Tk)[None, :]
            scores += tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32) * 1.4426950408889634
        if MASKED:
            valid = (n < Tk - start)[None, :]
            if CAUSAL is not None:
                valid = valid & ((row + shift - start + m)[:, None] >= n[None, :])
            scores = tl.where(valid, scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        finite = new_peak
        if bias_ptr is not None or (MASKED and CAUSAL == "lower"):  # a query may see no key: -inf - -inf would be NaN
            finite = tl.where(new_peak == float("-inf"), 0.0, new_peak)
        p = tl.exp2(scores - finite[:, None])
        # invariant: total and acc are sums of exponentials relative to the peak so far
        shrink = tl.exp2(peak - finite)
        total = total * shrink + tl.sum(p, 1)
        if DROPOUT:  # behind the sum: dropout scales probabilities that are already normalized
            p = tl.where(kept_scores(draw[0], draw[1], head, rows, start, Tq, Tk, draw[2], TILE[0], TILE[1]), p, 0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision=PRECISION)
        peak = new_peak
    return peak, total, acc


@triton.jit(do_not_specialize=["limit", "seed", "offset"])
def attention_kernel(
    inputs,
    outs,
    states,
    sizes,
    strides,
    scale,
    keep_scale,
    limit: tl.int64,
    seed: tl.int64,
    offset: tl.int64,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    DROPOUT: tl.constexpr,
    FP32: tl.constexpr,
    WHOLE: tl.constexpr,
    EVEN: tl.constexpr,
    SHORT: tl.constexpr,
    EMPTY: tl.constexpr,
    TILE: tl.constexpr,
    PLAIN: tl.constexpr,
):
    """Compute attention for one query tile in one head.

    Tiles are launched in reverse order, because with a causal mask the last tiles have the most keys and would
    otherwise finish late. Keys that need no mask are handled first, in a loop without a mask; the rest follows
    in a masked loop.

    Args:
        inputs: Pointers to q [B, H, Tq, D], k [B, H / GROUP, Tk, D], v [B, H / GROUP, Tk, Dv] and bias [B, H,
            Tq, Tk] (or None), read.
        outs: Pointers to output [B, H, Tq, Dv] and logsumexp [B, H, rows] (or None), written. Logsumexp rows
            from Tq on are infinity.
        states: Pointers that receive the seed, the offset and 0, each None if unused.
        sizes: H, Tq, Tk, D, Dv and the logsumexp rows.
        strides: Strides of `inputs` and `outs`, from `attention_stride_arguments`.
        scale: Score scale.
        keep_scale: 1 / (1 - dropout_p).
        limit: Dropout threshold, scaled by 2^32.
        seed: Philox seed.
        offset: Philox offset.
        GROUP: Query heads that share one key and value head.
        CAUSAL: None, "upper" or "lower" (see the module).
        DROPOUT: Drop probabilities.
        FP32: Convert the operands to fp32 before they are multiplied.
        WHOLE: D and Dv are equal to TILE[2].
        EVEN: WHOLE, and no tile reaches beyond Tq or Tk.
        SHORT: Use one masked loop over all keys.
        EMPTY: Logsumexp for a query that sees no key.
        TILE: BLOCK_M, BLOCK_N, BLOCK_D.
        PLAIN: Integers are encoded by `plain`, and strides for `stride_values`.
    """
    BLOCK_M: tl.constexpr = TILE[0]
    BLOCK_N: tl.constexpr = TILE[1]
    BLOCK_D: tl.constexpr = TILE[2]
    H, Tq, Tk, D, Dv, lse_rows = integer_values(sizes, PLAIN)
    strides = attention_strides(strides, PLAIN)
    head = tl.program_id(1).to(tl.int64)
    b, h = head // H, head % H
    k_ptr, v_ptr = head_of(inputs[1], b, h // GROUP, strides[1]), head_of(inputs[2], b, h // GROUP, strides[2])
    bias_ptr = inputs[3]
    if bias_ptr is not None:
        bias_ptr = head_of(bias_ptr, b, h, strides[3])
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    rows = row.to(tl.int64) + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    q = load_rows(head_of(inputs[0], b, h, strides[0]), rows, dims, Tq, D, strides[0], not EVEN, WHOLE, FP32)
    sums = (tl.full([BLOCK_M], float("-inf"), tl.float32), tl.zeros([BLOCK_M], tl.float32))
    sums = sums + (tl.zeros([BLOCK_M, BLOCK_D], tl.float32),)
    end, full, shift = Tk, Tk // BLOCK_N * BLOCK_N, 0
    if CAUSAL == "lower":
        shift = Tk - Tq
    if CAUSAL is not None:
        end = tl.minimum(Tk, tl.maximum(row + shift + BLOCK_M, 0))
        full = tl.minimum(full, tl.maximum(row + shift + 1, 0) // BLOCK_N * BLOCK_N)
    # keys before `full` are visible to every query of the tile; those from `end` on to none
    full = 0 if SHORT else full
    for masked in tl.static_range(1 if SHORT else 0, 2):
        sums = attend(
            q,
            sums,
            (k_ptr, v_ptr),
            bias_ptr,
            full if masked else 0,
            end if masked else full,
            head,
            row,
            shift,
            (Tq, Tk, D, Dv),
            strides[:4],
            scale,
            (seed, offset, limit),
            masked == 1,
            CAUSAL,
            DROPOUT,
            FP32,
            WHOLE,
            EVEN,
            TILE,
        )
    peak, total, acc = sums
    out = acc * (keep_scale / tl.where(total == 0, 1.0, total))[:, None]
    store_rows(head_of(outs[0], b, h, strides[4]), rows, dims, Tq, Dv, strides[4], out)
    if outs[1] is not None:
        lse = tl.where(total == 0, EMPTY, (peak + tl.log2(total)) * 0.6931471805599453)
        lse = tl.where(rows < Tq, lse, float("inf"))
        tl.store(head_of(outs[1], b, h, strides[5]) + rows * strides[5][2], lse, mask=rows < lse_rows)
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):  # one writer
        leave_state(states, seed, offset)


@triton.jit
def leave_state(states, seed, offset):
    """Store the dropout seed and offset for the backward pass, and 0 to the unused state."""
    seed_ptr, offset_ptr, unused_ptr = states
    if seed_ptr is not None:
        tl.store(seed_ptr, seed)
        tl.store(offset_ptr, offset)
    if unused_ptr is not None:
        tl.store(unused_ptr, 0)


def shared_heads(query, key):
    """Return the key head count; consecutive query heads share a key head.

    This is grouped-query attention (arXiv:2305.13245). Raises NotImplementedError unless the number of query
    heads is a multiple.
    """
    heads = key.shape[1]
    if heads != query.shape[1] and (heads == 0 or query.shape[1] % heads):
        raise NotImplementedError(f"{query.shape[1]} query heads are not a multiple of {heads} key heads")
    return heads


def check_attention(query, key, value, heads, Dv):
    """Raise NotImplementedError unless key is [B, heads, Tk, D] and value is [B, heads, Tk, Dv]."""
    (B, _, _, D), Tk = query.shape, key.shape[2]
    if key.shape != (B, heads, Tk, D) or value.shape != (B, heads, Tk, Dv):
        raise NotImplementedError(
            f"query {tuple(query.shape)} does not match key {tuple(key.shape)} and value {tuple(value.shape)}"
        )


def attention_tile(D, Tq, Tk, dtype):
    """Return BLOCK_M, BLOCK_N, BLOCK_D, warps and stages that fit the registers.

    Short sequences get smaller tiles, because less of a small tile is masked.
    """
    BLOCK_D = max(triton.next_power_of_2(D), 16)
    BLOCK_M, BLOCK_N, warps, stages = 128, 64, 8, 3
    if dtype == torch.float32:
        BLOCK_M, BLOCK_N, warps, stages = 32, 32, 4, 2
    elif BLOCK_D > NARROW_HEAD or Tq <= FEW_QUERIES:
        BLOCK_M, BLOCK_N, warps, stages = 64, 64, 4, 3 if BLOCK_D <= NARROW_HEAD else 2
    BLOCK_M = min(BLOCK_M, max(triton.next_power_of_2(Tq), 32))
    return BLOCK_M, min(BLOCK_N, max(triton.next_power_of_2(Tk), 32)), BLOCK_D, warps, stages


def attention(inputs, outs, states, causal, dropout_p, scale, philox, tile, fp32=False, empty=math.inf):
    """Compute attention into `outs`. A platform may replace this function.

    Args:
        inputs: Query, key, value, and bias or None.
        outs: Output, and logsumexp [B, H, rows] with rows >= Tq, or None.
        states: Tensors that receive the seed, the offset and 0, or None for each.
        causal: None, "upper" or "lower" (see the module).
        dropout_p: Dropout probability.
        scale: Score scale, or None for 1 / sqrt(D).
        philox: (seed, offset), only used for dropout_p > 0.
        tile: From `attention_tile`.
        fp32: Multiply in fp32.
        empty: Logsumexp for a query that sees no key.
    """
    tiled_attention(inputs, outs, states, causal, dropout_p, scale, philox, tile, fp32, empty)


def tiled_attention(inputs, outs, states, causal, dropout_p, scale, philox, tile, fp32, empty):
    """Launch `attention_kernel` with one program instance per query tile; the arguments are those for `attention`."""
    query, key, value, bias = inputs
    (B, H, Tq, D), Tk, Dv = query.shape, key.shape[2], value.shape[3]
    lse_rows = Tq if outs[1] is None else outs[1].shape[2]
    small = max(query.numel(), key.numel(), value.numel()) < SMALL_ATTENTION
    bias = None if bias is None else bias.expand(B, H, Tq, Tk)
    causal = "upper" if causal == "lower" and Tq == Tk else causal  # both masks are equal: one variant less
    seed, offset = philox if dropout_p > 0 else (0, 0)
    sizes = (max(H, 1), Tq, Tk, D, Dv, lse_rows) if B * H else (1, 0, 0, D, Dv, 0)
    attention_kernel[(max(triton.cdiv(lse_rows, tile[0]), 1), max(B * H, 1))](
        (query, key, value, bias),
        outs,
        states,
        integers(sizes, small),
        attention_stride_arguments((query, key, value, bias, *outs), small),
        1 / math.sqrt(max(D, 1)) if scale is None else scale,
        1 / (1 - dropout_p) if dropout_p < 1 else 0.0,
        math.ceil((1 - dropout_p) * PHILOX_RANGE),
        seed,
        offset,
        GROUP=max(H, 1) // max(key.shape[1], 1),
        CAUSAL=causal,
        DROPOUT=dropout_p > 0,
        FP32=fp32,
        WHOLE=D == Dv == tile[2],
        EVEN=D == Dv == tile[2] and lse_rows % tile[0] == Tq % tile[0] == Tk % tile[1] == 0,
        SHORT=causal is not None and Tk <= ONE_LOOP_KEYS,
        EMPTY=empty,
        TILE=tile[:3],
        PLAIN=small,
        num_warps=tile[3],
        num_stages=tile[4],
    )
