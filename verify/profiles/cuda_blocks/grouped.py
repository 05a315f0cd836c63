"""Attention in half precision on sm_90, in Gluon: four warps load (by TMA), and four groups of four warps compute.

Each group handles 64 queries. One program per multiprocessor goes from one block of 256 queries in a head to
the next. Keys and values wait in stages in shared memory. A group releases each stage separately, so the next
head's keys load while this head's are multiplied. A group takes a different quarter of the queries each time,
because with a causal mask the last quarter sees the most keys. The online softmax follows arXiv:2205.14135, as
in `blocks.attention`.
"""

import math

import triton
import triton.experimental.gluon as gluon
import triton.experimental.gluon.language as gl
import triton.experimental.gluon.language.nvidia.hopper as hopper
from blocks.alternating import GLUON, load_of_3_6, load_of_3_9, store_of_3_6, store_of_3_9
from blocks.matmul import processors
from blocks.tuning import TRITON, TUNING_TARGET

# Scores per call. Below this, setting up a launch (four descriptors) takes too large a share of the time.
FEWEST_SCORES = 2**25


@gluon.jit
def queries_of(item, work, ABREAST: gl.constexpr):
    """Return batch, head and first query for an item.

    ABREAST heads are processed at a time, starting with the queries that see the most keys.
    """
    heads, H, _, blocks, _, _ = work
    first = item // (ABREAST * blocks) * ABREAST
    width = gl.minimum(heads - first, ABREAST)
    inside = item % (ABREAST * blocks)
    head = first + inside % width
    return head // H, head % H, (blocks - 1 - inside // width) * 256


@gluon.jit
def keys_before(row, rows, work, CAUSAL: gl.constexpr):
    """Return the number of keys that any of `rows` queries from `row` on sees; at least one, which may be masked."""
    _, _, _, _, Tk, shift = work
    end = Tk
    if CAUSAL:
        end = gl.minimum(Tk, gl.maximum(row + shift + rows, 1))
    return end


@gluon.jit
def load_grouped(
    tensors, shared, barriers, work, TILE: gl.constexpr, CAUSAL: gl.constexpr, ABREAST: gl.constexpr, LOAD: gl.constexpr
):
    """Load queries, keys and values for all items of this program, each as soon as a stage is free."""
    q_rows, k_rows, v_rows = tensors
    q_stages, k_stages, v_stages, _ = shared
    q_full, q_free, full, free = barriers
    heads, _, GROUP, blocks, _, _ = work
    COLS: gl.constexpr = TILE[0]
    DEPTH: gl.constexpr = TILE[1]
    SLOTS: gl.constexpr = TILE[2]
    D: gl.constexpr = TILE[3]
    n = 0
    for item in range(gl.program_id(0), heads * blocks, gl.num_programs(0)):
        b, h, row = queries_of(item, work, ABREAST)
        turn = item // gl.num_programs(0)
        slot = turn % SLOTS
        hopper.mbarrier.wait(q_free.index(slot), ((turn // SLOTS) & 1) ^ 1)
        arrival = q_full.index(slot)
        hopper.mbarrier.expect(arrival, 256 * D * 2)
        for k in gl.static_range(4):
            LOAD(q_rows, [b, h, row + k * 64, 0], arrival, q_stages.index(slot * 4 + k))
        for start in range(0, keys_before(row, 256, work, CAUSAL), COLS):
            stage = n % DEPTH
            hopper.mbarrier.wait(free.index(stage), ((n // DEPTH) & 1) ^ 1)
            arrival = full.index(stage)
            hopper.mbarrier.expect(arrival, 2 * COLS * D * 2)
            LOAD(k_rows, [b, h // GROUP, start, 0], arrival, k_stages.index(stage))
            LOAD(v_rows, [b, h // GROUP, start, 0], arrival, v_stages.index(stage))
            n += 1


@gluon.jit
def attend_grouped(q, shared, barriers, n, row, work, factor, TILE: gl.constexpr, CAUSAL: gl.constexpr):
    """Return peak, total and weighted sum for 64 queries from `row` on, and the stage counter after them.

    Scores times `factor` are in units of log 2. One loop covers all tiles, because with two loops ptxas may
    drop values from the first that the second needs.
    """
    _, k_stages, v_stages, _ = shared
    _, _, full, free = barriers
    _, _, _, _, Tk, shift = work
    COLS: gl.constexpr = TILE[0]
    DEPTH: gl.constexpr = TILE[1]
    D: gl.constexpr = TILE[3]
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, COLS, 16])
    wide: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, D, 16])
    weights: gl.constexpr = gl.DotOperandLayout(0, wide, 2)
    peak = gl.full((64,), float("-inf"), gl.float32, gl.SliceLayout(1, layout))
    total = gl.zeros((64,), gl.float32, gl.SliceLayout(1, layout))
    acc = gl.zeros((64, D), gl.float32, wide)
    zeros = gl.zeros((64, COLS), gl.float32, layout)
    whole = Tk // COLS  # tiles in which every query sees every key
    if CAUSAL:
        whole = gl.minimum(whole, gl.maximum(row + shift + 1, 0) // COLS)
    for tile in range(gl.cdiv(keys_before(row, 64, work, CAUSAL), COLS)):
        stage = n % DEPTH
        hopper.mbarrier.wait(full.index(stage), (n // DEPTH) & 1)
        k = k_stages.index(stage).reshape((COLS, D)).permute((1, 0))
        scores = hopper.warpgroup_mma(q, k, zeros, use_acc=False, is_async=True)
        scores = hopper.warpgroup_mma_wait(0, deps=(scores,))
        if tile >= whole:
            cols = tile * COLS + gl.arange(0, COLS, gl.SliceLayout(0, layout))
            valid = (cols < Tk)[None, :]
            if CAUSAL:
                rows = row + shift + gl.arange(0, 64, gl.SliceLayout(1, layout))
                valid = valid & (rows[:, None] >= cols[None, :])
            scores = gl.where(valid, scores, float("-inf"))
        new_peak = gl.maximum(peak, gl.max(scores, 1))
        # Avoids -inf - -inf = NaN for rows in which every key so far is masked.
        finite = gl.where(new_peak == float("-inf"), 0.0, new_peak) * factor
        p = gl.exp2(scores * factor - finite[:, None])
        shrink = gl.exp2(peak * factor - finite)
        total = total * shrink + gl.sum(p, 1)
        peak = new_peak
        acc *= gl.convert_layout(shrink, gl.SliceLayout(1, wide))[:, None]
        v = v_stages.index(stage).reshape((COLS, D))
        acc = hopper.warpgroup_mma(gl.convert_layout(p.to(v_stages.dtype), weights), v, acc, is_async=True)
        acc = hopper.warpgroup_mma_wait(0, deps=(acc,))
        hopper.mbarrier.arrive(free.index(stage))
        n += 1
    return peak, total, acc, n


@gluon.jit
def answer_queries(
    asked,
    WHICH: gl.constexpr,
    TILE: gl.constexpr,
    CAUSAL: gl.constexpr,
    ABREAST: gl.constexpr,
    EMPTY: gl.constexpr,
    STORE: gl.constexpr,
):
    """Compute the results for one quarter of each item's queries, in rotation, in warp group WHICH."""
    outs, shared, barriers, work, factor = asked
    q_stages, _, _, out_stages = shared
    q_full, q_free, full, free = barriers
    out_rows, lse_ptr, lse_stride, Tq, lse_rows = outs
    heads, _, _, blocks, _, _ = work
    COLS: gl.constexpr = TILE[0]
    DEPTH: gl.constexpr = TILE[1]
    SLOTS: gl.constexpr = TILE[2]
    D: gl.constexpr = TILE[3]
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, COLS, 16])
    wide: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, D, 16])
    n = 0
    for item in range(gl.program_id(0), heads * blocks, gl.num_programs(0)):
        b, h, first = queries_of(item, work, ABREAST)
        turn = item // gl.num_programs(0)
        quarter = (WHICH + turn) % 4
        row = first + quarter * 64
        slot = turn % SLOTS
        after = n + gl.cdiv(keys_before(first, 256, work, CAUSAL), COLS)
        hopper.mbarrier.wait(q_full.index(slot), (turn // SLOTS) & 1)
        q = q_stages.index(slot * 4 + quarter).reshape((64, D))
        peak, total, acc, n = attend_grouped(q, shared, barriers, n, row, work, factor, TILE, CAUSAL)
        hopper.mbarrier.arrive(q_free.index(slot))
        for unseen in range(n, after):  # keys that only later quarters see still have to be released
            hopper.mbarrier.wait(full.index(unseen % DEPTH), (unseen // DEPTH) & 1)
            hopper.mbarrier.arrive(free.index(unseen % DEPTH))
        n = after
        out = acc * gl.convert_layout(1.0 / gl.where(total == 0, 1.0, total), gl.SliceLayout(1, wide))[:, None]
        # The previous store from this buffer has to be read completely before it is overwritten.
        hopper.tma.store_wait(0)
        out_stages.index(WHICH).reshape((64, D)).store(out.to(out_rows.dtype))
        hopper.fence_async_shared()
        STORE(out_rows, [b, h, row, 0], out_stages.index(WHICH))
        if lse_ptr is not None:
            lse = gl.where(total == 0, EMPTY, (peak * factor + gl.log2(total)) * 0.6931471805599453)
            rows = row + gl.arange(0, 64, gl.SliceLayout(1, layout))
            lse = gl.where(rows < Tq, lse, float("inf"))
            at = b.to(gl.int64) * lse_stride[0] + h.to(gl.int64) * lse_stride[1] + rows.to(gl.int64) * lse_stride[2]
            gl.store(lse_ptr + at, lse, mask=rows < lse_rows)
    hopper.tma.store_wait(0)


@gluon.jit
def leave_nothing_drawn(states):
    """Store 0 as seed and offset, from the first program only, because nothing is drawn."""
    seed_ptr, offset_ptr, unused_ptr = states
    if gl.program_id(0) == 0:
        if seed_ptr is not None:
            gl.store(seed_ptr, 0)
            gl.store(offset_ptr, 0)
        if unused_ptr is not None:
            gl.store(unused_ptr, 0)


@gluon.jit
def barriers_of(COUNT: gl.constexpr, ARRIVALS: gl.constexpr):
    """Return COUNT barriers, each of which completes after ARRIVALS arrivals."""
    barriers = gl.allocate_shared_memory(gl.int64, [COUNT, 1], hopper.mbarrier.MBarrierLayout())
    for i in gl.static_range(COUNT):
        hopper.mbarrier.init(barriers.index(i), count=ARRIVALS)
    return barriers


@gluon.jit
def rows_of_heads(x_ptr, B, H, T, stride, BOX: gl.constexpr, LAYOUT: gl.constexpr):
    """Return a descriptor for a tensor [B, H, T, D] whose last stride is 1."""
    return hopper.tma.make_tensor_descriptor(
        x_ptr, [B, H, T, BOX[3]], [stride[0], stride[1], stride[2], 1], BOX, LAYOUT
    )


@gluon.jit
def grouped_kernel(
    inputs,
    outs,
    states,
    sizes,
    strides,
    scale,
    TILE: gl.constexpr,
    CAUSAL: gl.constexpr,
    ABREAST: gl.constexpr,
    EMPTY: gl.constexpr,
    LOAD: gl.constexpr,
    STORE: gl.constexpr,
):
    """Compute attention for half-precision tensors, without bias and dropout.

    Args:
        inputs: q [B, H, Tq, D], k and v [B, heads_of_keys, Tk, D], read.
        outs: Output [B, H, Tq, D] and logsumexp [B, H, lse_rows] or None, written.
        states: Pointers to seed, offset and an unused word, which are set to 0; each may be None.
        sizes: (B, H, heads_of_keys, Tq, Tk, lse_rows, shift).
        strides: The first three strides of each tensor in `inputs` and `outs`.
        scale: Factor for the scores.
        TILE: (keys per stage, number of stages, number of items whose queries are buffered, D).
        CAUSAL: If True, query i sees keys up to i + shift.
        ABREAST: Number of heads that are processed at a time.
        EMPTY: The logsumexp over no keys.
        LOAD: Function for the Triton version that compiles this, which copies a tile into shared memory.
        STORE: Function for this version that copies a tile from shared memory.
    """
    B, H, heads_of_keys, Tq, Tk, lse_rows, shift = sizes
    DEPTH: gl.constexpr = TILE[1]
    SLOTS: gl.constexpr = TILE[2]
    q_box: gl.constexpr = [1, 1, 64, TILE[3]]
    k_box: gl.constexpr = [1, 1, TILE[0], TILE[3]]
    dtype: gl.constexpr = inputs[0].dtype.element_ty
    q_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(q_box, dtype)
    k_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for(k_box, dtype)
    q_rows = rows_of_heads(inputs[0], B, H, Tq, strides[0], q_box, q_layout)
    k_rows = rows_of_heads(inputs[1], B, heads_of_keys, Tk, strides[1], k_box, k_layout)
    v_rows = rows_of_heads(inputs[2], B, heads_of_keys, Tk, strides[2], k_box, k_layout)
    out_rows = rows_of_heads(outs[0], B, H, Tq, strides[3], q_box, q_layout)
    leave_nothing_drawn(states)
    q_stages = gl.allocate_shared_memory(dtype, [SLOTS * 4] + q_box, q_layout)
    k_stages = gl.allocate_shared_memory(dtype, [DEPTH] + k_box, k_layout)
    v_stages = gl.allocate_shared_memory(dtype, [DEPTH] + k_box, k_layout)
    out_stages = gl.allocate_shared_memory(dtype, [4] + q_box, q_layout)
    barriers = barriers_of(SLOTS, 1), barriers_of(SLOTS, 4), barriers_of(DEPTH, 1), barriers_of(DEPTH, 4)
    hopper.fence_async_shared()
    work = B * H, H, H // heads_of_keys, gl.cdiv(lse_rows, 256), Tk, shift
    shared = q_stages, k_stages, v_stages, out_stages
    out = out_rows, outs[1], strides[4], Tq, lse_rows
    asked = out, shared, barriers, work, scale * 1.4426950408889634
    gl.warp_specialize(
        [
            (answer_queries, (asked, gl.constexpr(0), TILE, CAUSAL, ABREAST, EMPTY, STORE)),
            (answer_queries, (asked, gl.constexpr(1), TILE, CAUSAL, ABREAST, EMPTY, STORE)),
            (answer_queries, (asked, gl.constexpr(2), TILE, CAUSAL, ABREAST, EMPTY, STORE)),
            (answer_queries, (asked, gl.constexpr(3), TILE, CAUSAL, ABREAST, EMPTY, STORE)),
            (load_grouped, ((q_rows, k_rows, v_rows), shared, barriers, work, TILE, CAUSAL, ABREAST, LOAD)),
        ],
        [4, 4, 4, 4],  # warps in addition to those of the launch
        [112, 112, 112, 32],  # registers per thread in these partitions
    )


def heads_described(x):
    """Return True if a tensor descriptor can describe [B, H, T, D]: rows have to begin at multiples of 16 bytes."""
    rows = x.stride(3) == 1 and x.stride(0) % 8 == x.stride(1) % 8 == x.stride(2) % 8 == 0
    return rows and x.data_ptr() % 16 == 0


def groups_serve(inputs, outs, causal, dropout_p, scale, fp32):
    """Return True if `grouped_attention` supports the call. With few queries its warp groups would be idle."""
    query, key, value, bias = inputs
    known = TUNING_TARGET == "sm_90" and TRITON in GLUON and bias is None and dropout_p == 0 and not fp32
    if not known or query.dim() != 4 or query.element_size() != 2 or (scale is not None and scale <= 0):
        return False
    (B, H, Tq, D), Tk = query.shape, key.shape[2]
    if D not in (64, 128) or value.shape[3] != D or Tq < 128 or Tk < 1 or B * H * Tq * Tk < FEWEST_SCORES:
        return False
    return all([heads_described(x) for x in (query, key, value, outs[0])])


def grouped_attention(inputs, outs, states, causal, scale, empty):
    """Compute `attention` without bias and dropout."""
    query, key, value, _ = inputs
    (B, H, Tq, D), (_, heads, Tk, _) = query.shape, key.shape
    lse_rows = Tq if outs[1] is None else outs[1].shape[2]
    cols = 32 if D == 128 or (causal is not None and Tk <= 512) else 64
    strides = [x.stride()[:3] if x is not None else (0, 0, 0) for x in (query, key, value, *outs)]
    grouped_kernel[(min(processors(), B * H * triton.cdiv(lse_rows, 256)),)](
        (query, key, value),
        outs,
        states,
        (B, H, heads, Tq, Tk, lse_rows, Tk - Tq if causal == "lower" else 0),
        tuple(strides),
        1 / math.sqrt(D) if scale is None else scale,
        TILE=(cols, (256 if D == 64 else 128) // cols, 2 if D == 64 else 1, D),
        CAUSAL=causal is not None,
        ABREAST=processors(),
        EMPTY=empty,
        LOAD=load_of_3_6 if TRITON == "3.6" else load_of_3_9,
        STORE=store_of_3_6 if TRITON == "3.6" else store_of_3_9,
        num_warps=4,
    )
