"""aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths,
    Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor
aten::_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths,
    Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor

Graves et al. 2006, equations 10 to 16: beta of a state at a step is the probability of all ways from there to the end.
alpha * beta / (likelihood * probability of the label) is the share of the ways through the state; the gradient is the
label's probability less the sum of its shares. Two launches, so that only what has to is done step after step: beta, a
program a sequence, in registers, where a thread has a label and the blank behind it and needs of its neighbour only the
label behind (the first blank is in all lanes alike), log_probs of the next AHEAD steps being on their way; then shares
and gradients, a program a few steps of a sequence. Of more than 1024 labels beta is in memory. log_probs and result:
[T, N, C].
"""

import torch
import triton
import triton.language as tl
from blocks.alignments import label_of, label_strides, lengths_of, log_sum, log_sum_two, steps_of

OVERLOADS = ("aten::_ctc_loss_backward", "aten::_ctc_loss_backward.Tensor")
DTYPES = ("float32", "float64")


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
    """sizes: T, N, C and the number of states; target_stride: `label_strides`. Lane k has label k and the blank behind
    it. Behind the last step a sequence is in its last blank."""
    T, N, C, width = sizes
    n = tl.program_id(0).to(tl.int64)
    steps, labels = tl.load(table_ptr + n), tl.load(table_ptr + N + n)
    targets_ptr += n * target_stride[0] + tl.load(table_ptr + 2 * N + n) * target_stride[2]
    k = tl.arange(0, LANES)
    state = 2 * k.to(tl.int64) + 1
    inside, leads = k < labels, k < labels - 1
    label = label_of(targets_ptr, state, inside, blank, C, target_stride[1])
    skips = leads & (label != label_of(targets_ptr, state + 2, leads, blank, C, target_stride[1]))
    step_stride = tl.cast(strides[0], tl.int64)
    log_probs_ptr += n * strides[1] + (steps - 1) * step_stride
    blank_ptr, label_ptr = log_probs_ptr + tl.cast(blank, tl.int64) * strides[2], log_probs_ptr + label * strides[2]
    beta_ptr += (n * T + steps - 1) * width + 2 * k
    nothing = tl.full([LANES], float("-inf"), beta_ptr.dtype.element_ty)
    blanks, names = tl.where(k == labels - 1, 0.0, nothing), nothing
    start = tl.where(labels == 0, 0.0, nothing)  # the first blank
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
            start = log_sum_two(start, tl.gather(names, first_lane, 0)) + p_blank[i]
            moves = tl.where(leads, tl.gather(names, behind, 0), nothing)
            ways = log_sum(names, blanks, tl.where(skips, moves, nothing)) + p_label[i]
            ways_blank = log_sum_two(blanks, moves) + p_blank[i]
            names, blanks = tl.where(inside, ways, nothing), tl.where(inside, ways_blank, nothing)
            tl.store(beta_ptr, start, mask=(k == 0) & (i < left))
            tl.store(beta_ptr + 1, names, mask=inside & (i < left))
            tl.store(beta_ptr + 2, blanks, mask=inside & (i < left))
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
    """As `beta_kernel`, with a lane for each state and beta of the step behind read where it was stored."""
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
            third = s + 2 < states
            skips = third & (label != label_of(targets_ptr, s + 2, third, blank, C, target_stride[1]))
            after_ptr = beta_ptr + (t + 1) * width + s
            stays = tl.load(after_ptr, mask=inside & (back > 0), other=float("-inf"))
            moves = tl.load(after_ptr + 1, mask=(s + 1 < states) & (back > 0), other=float("-inf"))
            jumps = tl.load(after_ptr + 2, mask=skips & (back > 0), other=float("-inf"))
            ends = tl.where(third, float("-inf"), 0.0).to(stays.dtype)
            p = tl.load(log_probs_ptr + t * strides[0] + label * strides[2], mask=inside, other=0)
            tl.store(beta_ptr + t * width + s, tl.where(back > 0, log_sum(stays, moves, jumps), ends) + p, mask=inside)
        tl.debug_barrier()


@triton.jit
def share_of(alpha_ptr, beta_ptr, loss, p, mask):
    """Of the ways through a state, of all."""
    alpha = tl.load(alpha_ptr, mask=mask, other=float("-inf"))
    ways = alpha + tl.load(beta_ptr, mask=mask, other=float("-inf"))
    return tl.where(mask & (ways != float("-inf")), tl.exp(ways + loss - p), 0.0)


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
    """The gradient of STEPS steps of a sequence: 0 after its last. First the shares of labels, which atomics add up
    where those of the blank were stored, then the gradients in their place. Of the last step, where the last label is
    the blank, only its own state's share counts, as in ATen. Where there is no share it is of the logarithm of 0, which
    matters where the others are not finite."""
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
    of_blank = tl.zeros([STEPS], p_blank.dtype)
    for first in range(0, labels + 1, LANES):
        s = 2 * (first + tl.arange(0, LANES).to(tl.int64))[None, :]
        mask = counts & (s <= 2 * labels)
        of_blank += tl.sum(share_of(alpha_ptr + s * alpha_stride[2], beta_ptr + s, loss, p_blank, mask), 1)
    for first in range(0, C, BLOCK_C):
        c = (first + tl.arange(0, BLOCK_C).to(tl.int64))[None, :]
        tl.store(out_ptr + c, tl.where(c == blank, of_blank[:, None], 0.0), mask=(t < T) & (c < C))
    tl.debug_barrier()
    for first in range(0, labels, LANES):
        s = 2 * (first + tl.arange(0, LANES).to(tl.int64))[None, :] + 1
        label = label_of(targets_ptr, s, s < 2 * labels, blank, C, target_stride[1])
        mask = (t < steps) & (s < 2 * labels)
        p_label = tl.load(log_probs_ptr + label * strides[2], mask=mask, other=0)
        ways = share_of(alpha_ptr + s * alpha_stride[2], beta_ptr + s, loss, p_label, mask)
        tl.atomic_add(out_ptr + label, ways, mask=mask, sem="relaxed")
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
        raise RuntimeError(f"gradients, losses and alpha {shapes} for {tuple(log_probs.shape)}, {longest} labels")
    out = torch.empty((T, N, C), dtype=log_probs.dtype, device=log_probs.device)
    beta = torch.empty((N, T, width), dtype=log_probs.dtype, device=log_probs.device)
    sizes, strides = (T, N, C, width), (log_probs.stride(), label_strides(targets))
    LANES = max(triton.next_power_of_2(longest), 32)
    if LANES > 1024:
        long_beta_kernel[(N,)](log_probs, targets, table, beta, sizes, blank, *strides, BLOCK=1024, num_warps=8)
    else:
        ahead, warps = (8, 1) if LANES == 32 else (4, LANES // 32)
        beta_kernel[(N,)](
            log_probs, targets, table, beta, sizes, blank, *strides, LANES=LANES, AHEAD=ahead, num_warps=warps
        )
    LANES, BLOCK_C = min(LANES, 128), min(max(triton.next_power_of_2(C), 32), 256)
    STEPS = max(512 // max(LANES, BLOCK_C), 1)
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
