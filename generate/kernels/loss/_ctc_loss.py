"""aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0,
    bool zero_infinity=False) -> (Tensor, Tensor)
aten::_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0,
    bool zero_infinity=False) -> (Tensor, Tensor)

The algorithm is Graves et al. 2006, equations 5 to 8. alpha of a state at a step is the probability of all
paths that lead to it. All values are logarithms, and "unreachable" is log(0).

log_probs is [T, N, C]. The results are the losses [N] and log alpha [N, T, 2 * longest + 1], with `longest`
the largest label count in a sequence. zero_infinity only affects the gradient.

A program instance takes one sequence, step by step, and keeps alpha in registers. A lane holds label k and
the blank before it, so it only needs the previous label from its neighbor. If the labels fill all lanes, each
lane also holds a copy of the final blank. log_probs for the next AHEAD steps are loaded in advance, to hide
the memory latency. States that a sequence does not have, and steps after its last, store log(0). For more
than 1024 labels, alpha is read back from memory.
"""

import torch
import triton
import triton.language as tl
from blocks.alignments import label_of, label_strides, lengths_of, log_sum, log_sum_two, steps_of

OVERLOADS = ("aten::_ctc_loss", "aten::_ctc_loss.Tensor")
DTYPES = ("float32", "float64")

MOST_LANES = 1024  # one thread per label; a CUDA block has at most 1024 threads


@triton.jit
def loss_of(last_blank, last_label, steps, labels):
    """Return the loss, from alpha in the last two states at the last step.

    last_label is minus infinity if there is no label. The loss is 0 for a sequence without steps and labels.
    """
    log_likelihood = log_sum_two(last_blank, last_label)
    return tl.where((steps == 0) & (labels == 0), 0.0, -log_likelihood)


@triton.jit
def alpha_kernel(
    log_probs_ptr,
    targets_ptr,
    table_ptr,
    losses_ptr,
    alpha_ptr,
    sizes,
    blank,
    strides,
    target_stride,
    FULL: tl.constexpr,
    LANES: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Compute alpha and the loss for one sequence; before the first step it is in its first blank.

    Args:
        log_probs_ptr: [T, N, C], read.
        targets_ptr: Labels, [N, labels] or concatenated, read.
        table_ptr: Lengths from `lengths_of`, read.
        losses_ptr: [N], written.
        alpha_ptr: [N, T, width], contiguous, written.
        sizes: (T, N, C, width), with width the number of states.
        blank: Class number of the blank.
        strides: The three strides of log_probs.
        target_stride: Strides from `label_strides`.
        FULL: True if the longest sequence has LANES labels, so that the last blank has no lane.
        LANES: Number of lanes, a power of 2; at least the largest label count.
        AHEAD: Number of steps whose log_probs are loaded in advance.
    """
    T, N, C, width = sizes
    n = tl.program_id(0).to(tl.int64)
    steps, labels = tl.load(table_ptr + n), tl.load(table_ptr + N + n)
    targets_ptr += n * target_stride[0] + tl.load(table_ptr + 2 * N + n) * target_stride[2]
    k = tl.arange(0, LANES)
    state = 2 * k.to(tl.int64) + 1
    has_blank, has_label = k <= labels, k < labels
    label = label_of(targets_ptr, state, has_label, blank, C, target_stride[1])
    has_previous = has_label & (k > 0)
    skips = has_previous & (label != label_of(targets_ptr, state - 2, has_previous, blank, C, target_stride[1]))
    log_probs_ptr += n * strides[1]
    blank_ptr, label_ptr = log_probs_ptr + tl.cast(blank, tl.int64) * strides[2], log_probs_ptr + label * strides[2]
    alpha_ptr += n * T * width + 2 * k
    minus_inf = tl.full([LANES], float("-inf"), alpha_ptr.dtype.element_ty)
    log_blank, log_label = tl.where(k == 0, 0.0, minus_inf), minus_inf
    before, last = tl.maximum(k - 1, 0), tl.full([LANES], LANES - 1, tl.int32)
    final = minus_inf  # final blank, used after LANES labels
    p_blank = steps_of(blank_ptr, steps, strides[0], True, AHEAD)
    p_label = steps_of(label_ptr, steps, strides[0], has_label, AHEAD)
    for first in range(0, T, AHEAD):
        left, rest = (steps - first).to(tl.int32), T - first
        blank_ptr += AHEAD * tl.cast(strides[0], tl.int64)
        label_ptr += AHEAD * tl.cast(strides[0], tl.int64)
        next_blank = steps_of(blank_ptr, left - AHEAD, strides[0], True, AHEAD)
        next_label = steps_of(label_ptr, left - AHEAD, strides[0], has_label, AHEAD)
        for i in tl.static_range(AHEAD):
            moves_last = tl.gather(log_label, last, 0) if FULL else minus_inf
            is_reachable = (k == 0) | (first + i > 0)  # the first step reaches only states 0 and 1
            moves = tl.where(k > 0, tl.gather(log_label, before, 0), minus_inf)
            ways = log_sum(log_label, log_blank, tl.where(skips, moves, minus_inf)) + p_label[i]
            ways_blank = log_sum_two(log_blank, moves) + p_blank[i]
            ways = tl.where(has_label & is_reachable, ways, minus_inf)
            ways_blank = tl.where(has_blank & is_reachable, ways_blank, minus_inf)
            now, now_blank = tl.where(i < left, ways, minus_inf), tl.where(i < left, ways_blank, minus_inf)
            tl.store(alpha_ptr, now_blank, mask=(2 * k < width) & (i < rest))
            tl.store(alpha_ptr + 1, now, mask=(2 * k + 1 < width) & (i < rest))
            log_label, log_blank = tl.where(i < left, ways, log_label), tl.where(i < left, ways_blank, log_blank)
            if FULL:
                ways_blank = log_sum_two(final, moves_last) + p_blank[i]
                ways_blank = tl.where((labels == LANES) & (first + i > 0), ways_blank, minus_inf)
                now_blank = tl.where(i < left, ways_blank, minus_inf)
                tl.store(alpha_ptr + 2 * LANES, now_blank, mask=(k == 0) & (i < rest))
                final = tl.where(i < left, ways_blank, final)
            alpha_ptr += width
        p_blank, p_label = next_blank, next_label
    last_blank = tl.sum(tl.where(k == labels % LANES, tl.where(labels == LANES, final, log_blank), 0.0), 0)
    last_label = tl.where(labels > 0, tl.sum(tl.where(k == labels - 1, log_label, 0.0), 0), float("-inf"))
    tl.store(losses_ptr + n, loss_of(last_blank, last_label, steps, labels))


@triton.jit
def long_alpha_kernel(
    log_probs_ptr,
    targets_ptr,
    table_ptr,
    losses_ptr,
    alpha_ptr,
    sizes,
    blank,
    strides,
    target_stride,
    BLOCK: tl.constexpr,
):
    """Compute the same as `alpha_kernel`, with one lane per state, for more than 1024 labels.

    alpha at the previous step is read back from memory. The barrier after each step makes it visible to all
    threads.

    Args:
        log_probs_ptr: [T, N, C], read.
        targets_ptr: Labels, [N, labels] or concatenated, read.
        table_ptr: Lengths from `lengths_of`, read.
        losses_ptr: [N], written.
        alpha_ptr: [N, T, width], contiguous, written and read.
        sizes: (T, N, C, width), with width the number of states.
        blank: Class number of the blank.
        strides: The three strides of log_probs.
        target_stride: Strides from `label_strides`.
        BLOCK: States that are computed at a time.
    """
    T, N, C, width = sizes
    n = tl.program_id(0).to(tl.int64)
    steps, labels = tl.load(table_ptr + n), tl.load(table_ptr + N + n)
    targets_ptr += n * target_stride[0] + tl.load(table_ptr + 2 * N + n) * target_stride[2]
    alpha_ptr += n * T * width
    log_probs_ptr += n * strides[1]
    for step in range(T):
        t = tl.cast(step, tl.int64)
        for first in range(0, width, BLOCK):
            s = (first + tl.arange(0, BLOCK)).to(tl.int64)
            inside = (t < steps) & (s < 2 * labels + 1)
            label = label_of(targets_ptr, s, inside, blank, C, target_stride[1])
            has_two_before = inside & (s > 1)
            skips = has_two_before & (label != label_of(targets_ptr, s - 2, has_two_before, blank, C, target_stride[1]))
            before_ptr = alpha_ptr + (t - 1) * width + s
            stays = tl.load(before_ptr, mask=inside & (t > 0), other=float("-inf"))
            moves = tl.load(before_ptr - 1, mask=inside & (t > 0) & (s > 0), other=float("-inf"))
            jumps = tl.load(before_ptr - 2, mask=skips & (t > 0), other=float("-inf"))
            total = tl.where(t > 0, log_sum(stays, moves, jumps), tl.zeros_like(stays))
            p = tl.load(log_probs_ptr + t * strides[0] + label * strides[2], mask=inside, other=0)
            is_reachable = inside & ((t > 0) | (s < 2))
            tl.store(alpha_ptr + t * width + s, tl.where(is_reachable, total + p, float("-inf")), mask=s < width)
        tl.debug_barrier()
    end_ptr = alpha_ptr + (steps - 1) * width + 2 * labels
    last_blank = tl.load(end_ptr, mask=steps > 0, other=float("-inf"))
    last_label = tl.load(end_ptr - 1, mask=(steps > 0) & (labels > 0), other=float("-inf"))
    tl.store(losses_ptr + n, loss_of(last_blank, last_label, steps, labels))


def wrapper(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    table, longest = lengths_of(log_probs, targets, input_lengths, target_lengths, blank)
    (T, N, C), width = log_probs.shape, 2 * longest + 1
    losses = torch.empty(N, dtype=log_probs.dtype, device=log_probs.device)
    alpha = torch.empty((N, T, width), dtype=log_probs.dtype, device=log_probs.device)
    arguments = (log_probs, targets, table, losses, alpha, (T, N, C, width), blank)
    strides = (log_probs.stride(), label_strides(targets))
    LANES = max(triton.next_power_of_2(longest), 32)  # at least one warp
    if LANES > MOST_LANES:
        long_alpha_kernel[(N,)](*arguments, *strides, BLOCK=1024, num_warps=8)
    else:
        # A single warp loads further ahead, because no other warp runs while it waits.
        ahead, warps = (8, 1) if LANES == 32 else (4, LANES // 32)
        full = longest == LANES
        alpha_kernel[(N,)](*arguments, *strides, FULL=full, LANES=LANES, AHEAD=ahead, num_warps=warps)
    return losses, alpha
