"""aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths,
    Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor
aten::_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths,
    Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor

The algorithm is Graves et al. 2006, equations 10 to 16. beta of a state at a step is the probability of all
paths from it to the end. alpha * beta / (likelihood * label probability) is the fraction of all paths that
pass through the state. The gradient is the label's probability minus the sum of its fractions. log_probs and
the result are [T, N, C].

There are two launches, so that only the recurrence is sequential:

- beta, one program instance per sequence, in registers. A lane holds a label and the blank after it, so it
  only needs the next label from its neighbor. The first blank is the same in all lanes. log_probs for the
  next AHEAD steps are loaded in advance. For more than 1024 labels, beta is read back from memory.
- Fractions and gradients, one program instance per few steps in a sequence.
"""

import torch
import triton
import triton.language as tl
from blocks.alignments import label_of, label_strides, lengths_of, log_sum, log_sum_two, steps_of

OVERLOADS = ("aten::_ctc_loss_backward", "aten::_ctc_loss_backward.Tensor")
DTYPES = ("float32", "float64")

MOST_LANES = 1024  # one thread per label; a CUDA block has at most 1024 threads
GRADIENT_TILE = 512  # largest tile of the gradient kernel, [STEPS, LANES or BLOCK_C]: 4 elements per thread


@triton.jit
def beta_kernel(
    log_probs_ptr,
    targets_ptr,
    table_ptr,
    beta_ptr,
    sizes,
    blank,
    strides,
    target_stride,
    LANES: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Compute beta for one sequence; after the last step it is in its last blank.

    Lane k holds label k and the blank after it.

    Args:
        log_probs_ptr: [T, N, C], read.
        targets_ptr: Labels, [N, labels] or concatenated, read.
        table_ptr: Lengths from `lengths_of`, read.
        beta_ptr: [N, T, width], contiguous, written.
        sizes: (T, N, C, width), with width the number of states.
        blank: Class number of the blank.
        strides: The three strides of log_probs.
        target_stride: Strides from `label_strides`.
        LANES: Number of lanes, a power of 2; at least the largest label count.
        AHEAD: Number of steps whose log_probs are loaded in advance.
    """
    T, N, C, width = sizes
    n = tl.program_id(0).to(tl.int64)
    steps, labels = tl.load(table_ptr + n), tl.load(table_ptr + N + n)
    targets_ptr += n * target_stride[0] + tl.load(table_ptr + 2 * N + n) * target_stride[2]
    k = tl.arange(0, LANES)
    state = 2 * k.to(tl.int64) + 1
    inside, has_next = k < labels, k < labels - 1
    label = label_of(targets_ptr, state, inside, blank, C, target_stride[1])
    skips = has_next & (label != label_of(targets_ptr, state + 2, has_next, blank, C, target_stride[1]))
    step_stride = tl.cast(strides[0], tl.int64)
    log_probs_ptr += n * strides[1] + (steps - 1) * step_stride
    blank_ptr, label_ptr = log_probs_ptr + tl.cast(blank, tl.int64) * strides[2], log_probs_ptr + label * strides[2]
    beta_ptr += (n * T + steps - 1) * width + 2 * k
    minus_inf = tl.full([LANES], float("-inf"), beta_ptr.dtype.element_ty)
    log_blank, log_label = tl.where(k == labels - 1, 0.0, minus_inf), minus_inf
    first_blank = tl.where(labels == 0, 0.0, minus_inf)  # the first blank, in all lanes
    behind, first_lane = tl.minimum(k + 1, LANES - 1), tl.zeros([LANES], tl.int32)
    p_blank = steps_of(blank_ptr, steps, -step_stride, True, AHEAD)
    p_label = steps_of(label_ptr, steps, -step_stride, inside, AHEAD)
    for first in range(0, steps, AHEAD):
        left = (steps - first).to(tl.int32)
        blank_ptr -= AHEAD * step_stride
        label_ptr -= AHEAD * step_stride
        next_blank = steps_of(blank_ptr, left - AHEAD, -step_stride, True, AHEAD)
        next_label = steps_of(label_ptr, left - AHEAD, -step_stride, inside, AHEAD)
        for i in tl.static_range(AHEAD):
            first_blank = log_sum_two(first_blank, tl.gather(log_label, first_lane, 0)) + p_blank[i]
            moves = tl.where(has_next, tl.gather(log_label, behind, 0), minus_inf)
            new_label = log_sum(log_label, log_blank, tl.where(skips, moves, minus_inf)) + p_label[i]
            new_blank = log_sum_two(log_blank, moves) + p_blank[i]
            log_label, log_blank = tl.where(inside, new_label, minus_inf), tl.where(inside, new_blank, minus_inf)
            tl.store(beta_ptr, first_blank, mask=(k == 0) & (i < left))
            tl.store(beta_ptr + 1, log_label, mask=inside & (i < left))
            tl.store(beta_ptr + 2, log_blank, mask=inside & (i < left))
            beta_ptr -= width
        p_blank, p_label = next_blank, next_label


@triton.jit
def long_beta_kernel(
    log_probs_ptr,
    targets_ptr,
    table_ptr,
    beta_ptr,
    sizes,
    blank,
    strides,
    target_stride,
    BLOCK: tl.constexpr,
):
    """Compute the same as `beta_kernel`, with one lane per state, for more than 1024 labels.

    beta at the next step is read back from memory. The barrier after each step makes it visible to all
    threads.

    Args:
        log_probs_ptr: [T, N, C], read.
        targets_ptr: Labels, [N, labels] or concatenated, read.
        table_ptr: Lengths from `lengths_of`, read.
        beta_ptr: [N, T, width], contiguous, written and read.
        sizes: (T, N, C, width), with width the number of states.
        blank: Class number of the blank.
        strides: The three strides of log_probs.
        target_stride: Strides from `label_strides`.
        BLOCK: States that are computed at a time.
    """
    T, N, C, width = sizes
    n = tl.program_id(0).to(tl.int64)
    steps, states = tl.load(table_ptr + n), 2 * tl.load(table_ptr + N + n) + 1
    targets_ptr += n * target_stride[0] + tl.load(table_ptr + 2 * N + n) * target_stride[2]
    beta_ptr += n * T * width
    log_probs_ptr += n * strides[1]
    for back in range(steps):
        t = steps - 1 - back
        for first in range(0, states, BLOCK):
            s = (first + tl.arange(0, BLOCK)).to(tl.int64)
            inside = s < states
            label = label_of(targets_ptr, s, inside, blank, C, target_stride[1])
            has_two_after = s + 2 < states
            skips = has_two_after & (label != label_of(targets_ptr, s + 2, has_two_after, blank, C, target_stride[1]))
            after_ptr = beta_ptr + (t + 1) * width + s
            stays = tl.load(after_ptr, mask=inside & (back > 0), other=float("-inf"))
            moves = tl.load(after_ptr + 1, mask=(s + 1 < states) & (back > 0), other=float("-inf"))
            jumps = tl.load(after_ptr + 2, mask=skips & (back > 0), other=float("-inf"))
            ends = tl.where(has_two_after, float("-inf"), 0.0).to(stays.dtype)
            p = tl.load(log_probs_ptr + t * strides[0] + label * strides[2], mask=inside, other=0)
            tl.store(beta_ptr + t * width + s, tl.where(back > 0, log_sum(stays, moves, jumps), ends) + p, mask=inside)
        tl.debug_barrier()


@triton.jit
def share_of(alpha_ptr, beta_ptr, loss, p, mask):
    """Return the fraction of all paths that pass through a state, and 0 if the mask is false."""
    alpha = tl.load(alpha_ptr, mask=mask, other=float("-inf"))
    paths = alpha + tl.load(beta_ptr, mask=mask, other=float("-inf"))
    return tl.where(mask & (paths != float("-inf")), tl.exp(paths + loss - p), 0.0)


@triton.jit
def gradient_kernel(
    grad_ptr,
    log_probs_ptr,
    targets_ptr,
    table_ptr,
    losses_ptr,
    alpha_ptr,
    beta_ptr,
    out_ptr,
    sizes,
    blank,
    strides,
    target_stride,
    grad_stride,
    loss_stride,
    alpha_stride,
    ZERO_INFINITY: tl.constexpr,
    STEPS: tl.constexpr,
    LANES: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Compute the gradient for STEPS steps in one sequence; it is 0 after the last step.

    First the sums of the blank's fractions are stored. Atomics then add the labels' fractions to the output,
    and finally the gradients replace them. Barriers separate these phases.

    At the last step, if the last label is the blank class, only the fraction for that label's own state
    counts, as in ATen. A class without any fraction uses exp(loss - p - infinity) instead of 0. This matters
    if loss or p is not finite, because the result is then NaN.

    Args:
        grad_ptr: [N], read.
        log_probs_ptr: [T, N, C], read.
        targets_ptr: Labels, [N, labels] or concatenated, read.
        table_ptr: Lengths from `lengths_of`, read.
        losses_ptr: [N], read.
        alpha_ptr: [N, T, at least width], read.
        beta_ptr: [N, T, width], contiguous, read.
        out_ptr: [T, N, C], contiguous, written and updated with atomics.
        sizes: (T, N, C, width), with width the number of states.
        blank: Class number of the blank.
        strides: The three strides of log_probs.
        target_stride: Strides from `label_strides`.
        grad_stride: Stride of grad.
        loss_stride: Stride of the losses.
        alpha_stride: The three strides of alpha.
        ZERO_INFINITY: Store 0 for sequences whose loss is infinite.
        STEPS: Steps per program instance.
        LANES: States that are processed at a time.
        BLOCK_C: Classes that are processed at a time.
    """
    T, N, C, width = sizes
    parts = tl.cdiv(T, STEPS)
    n = (tl.program_id(0) // parts).to(tl.int64)
    t = (tl.program_id(0) % parts).to(tl.int64) * STEPS + tl.arange(0, STEPS)[:, None]
    steps, labels = tl.load(table_ptr + n), tl.load(table_ptr + N + n)
    targets_ptr += n * target_stride[0] + tl.load(table_ptr + 2 * N + n) * target_stride[2]
    log_probs_ptr += n * strides[1] + t * strides[0]
    alpha_ptr += n * alpha_stride[0] + t * alpha_stride[1]
    beta_ptr += (n * T + t) * width
    out_ptr += (t * N + n) * C
    loss, grad = tl.load(losses_ptr + n * loss_stride), tl.load(grad_ptr + n * grad_stride)
    final = labels - 1 + tl.arange(0, 1)
    final_blank = (final >= 0) & (label_of(targets_ptr, 2 * final + 1, final >= 0, blank, C, target_stride[1]) == blank)
    counts = (t < steps - 1) | ((t < steps) & ~final_blank[None, :])
    p_blank = tl.load(log_probs_ptr + tl.cast(blank, tl.int64) * strides[2], mask=t < steps, other=0)
    blank_share = tl.zeros([STEPS], p_blank.dtype)
    for first in range(0, labels + 1, LANES):
        s = 2 * (first + tl.arange(0, LANES).to(tl.int64))[None, :]
        mask = counts & (s <= 2 * labels)
        blank_share += tl.sum(share_of(alpha_ptr + s * alpha_stride[2], beta_ptr + s, loss, p_blank, mask), 1)
    for first in range(0, C, BLOCK_C):
        c = (first + tl.arange(0, BLOCK_C).to(tl.int64))[None, :]
        tl.store(out_ptr + c, tl.where(c == blank, blank_share[:, None], 0.0), mask=(t < T) & (c < C))
    tl.debug_barrier()
    for first in range(0, labels, LANES):
        s = 2 * (first + tl.arange(0, LANES).to(tl.int64))[None, :] + 1
        label = label_of(targets_ptr, s, s < 2 * labels, blank, C, target_stride[1])
        mask = (t < steps) & (s < 2 * labels)
        p_label = tl.load(log_probs_ptr + label * strides[2], mask=mask, other=0)
        label_share = share_of(alpha_ptr + s * alpha_stride[2], beta_ptr + s, loss, p_label, mask)
        # Only this program instance adds to its steps; a class may occur in several labels of the tile.
        tl.atomic_add(out_ptr + label, label_share, mask=mask, sem="relaxed")
    tl.debug_barrier()
    for first in range(0, C, BLOCK_C):
        c = (first + tl.arange(0, BLOCK_C).to(tl.int64))[None, :]
        inside = (t < steps) & (c < C)
        p = tl.load(log_probs_ptr + c * strides[2], mask=inside, other=0)
        share = tl.load(out_ptr + c, mask=inside, other=0)
        share = tl.where(share == 0, tl.exp(loss - p + float("-inf")), share)
        if ZERO_INFINITY:
            inside = inside & (loss != float("inf"))
        tl.store(out_ptr + c, tl.where(inside, (tl.exp(p) - share) * grad, 0.0), mask=(t < T) & (c < C))


def wrapper(
    grad,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    neg_log_likelihood,
    log_alpha,
    blank,
    zero_infinity=False,
):
    table, longest = lengths_of(log_probs, targets, input_lengths, target_lengths, blank)
    (T, N, C), width = log_probs.shape, 2 * longest + 1
    shapes = [tuple(t.shape) for t in (grad, neg_log_likelihood, log_alpha)]
    if shapes[:2] != [(N,), (N,)] or shapes[2][:2] != (N, T) or shapes[2][2] < width:
        raise RuntimeError(
            f"gradient, loss and alpha {shapes} do not fit {tuple(log_probs.shape)} with up to {longest} labels"
        )
    out = torch.empty((T, N, C), dtype=log_probs.dtype, device=log_probs.device)
    beta = torch.empty((N, T, width), dtype=log_probs.dtype, device=log_probs.device)
    sizes, strides = (T, N, C, width), (log_probs.stride(), label_strides(targets))
    LANES = max(triton.next_power_of_2(longest), 32)  # at least one warp
    if LANES > MOST_LANES:
        long_beta_kernel[(N,)](log_probs, targets, table, beta, sizes, blank, *strides, BLOCK=1024, num_warps=8)
    else:
        ahead, warps = (8, 1) if LANES == 32 else (4, LANES // 32)
        beta_kernel[(N,)](
            log_probs, targets, table, beta, sizes, blank, *strides, LANES=LANES, AHEAD=ahead, num_warps=warps
        )
    LANES, BLOCK_C = min(LANES, 128), min(max(triton.next_power_of_2(C), 32), 256)
    STEPS = max(GRADIENT_TILE // max(LANES, BLOCK_C), 1)
    gradient_kernel[(triton.cdiv(T, STEPS) * N,)](
        grad,
        log_probs,
        targets,
        table,
        neg_log_likelihood,
        log_alpha,
        beta,
        out,
        sizes,
        blank,
        *strides,
        grad.stride(0),
        neg_log_likelihood.stride(0),
        log_alpha.stride(),
        ZERO_INFINITY=zero_infinity,
        STEPS=STEPS,
        LANES=LANES,
        BLOCK_C=BLOCK_C,
        num_warps=4,
    )
    return out
