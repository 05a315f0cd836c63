"""aten::_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths,
    Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor
aten::_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths,
    Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor

Graves et al. 2006, equations 10 to 16: beta of a state at a step is the probability of all ways from there to the end.
alpha * beta / (likelihood * probability of the label) is the share of the ways through the state, which atomics add up
for each label; the gradient is the label's probability less that sum. A program takes a sequence, from its last step
on, with a lane for each state; the second launch takes elements. log_probs and result: [T, N, C].
"""

import torch
import triton
import triton.language as tl
from blocks.alignments import label_of, label_strides, lengths_of, log_sum
from blocks.creation import fill

OVERLOADS = ("aten::_ctc_loss_backward", "aten::_ctc_loss_backward.Tensor")
DTYPES = ("float32", "float64")


@triton.jit
def shares_kernel(
    log_probs_ptr,
    targets_ptr,
    table_ptr,
    losses_ptr,
    alpha_ptr,
    beta_ptr,
    shares_ptr,
    sizes,
    blank,
    strides,
    target_stride,
    loss_stride,
    alpha_stride,
    BLOCK: tl.constexpr,
):
    """sizes: N, C and the number of states; beta: of two steps, in turn; target_stride: `label_strides`. Of the last
    step, where the last label is the blank, only its own state's share counts, as in ATen."""
    N, C, width = sizes
    n = tl.program_id(0).to(tl.int64)
    steps, states = tl.load(table_ptr + n), 2 * tl.load(table_ptr + N + n) + 1
    targets_ptr += n * target_stride[0] + tl.load(table_ptr + 2 * N + n) * target_stride[2]
    beta_ptr += n * 2 * width
    log_probs_ptr += n * strides[1]
    loss = tl.load(losses_ptr + n * loss_stride)
    final = states - 2 + tl.arange(0, 1)
    final_blank = (final > 0) & (label_of(targets_ptr, final, final > 0, blank, C, target_stride[1]) == blank)
    for back in range(steps):
        t = steps - 1 - back
        now_ptr, after_ptr = beta_ptr + t % 2 * width, beta_ptr + (t + 1) % 2 * width
        share_ptr = shares_ptr + (t * N + n) * C
        for first in range(0, states, BLOCK):
            s = (first + tl.arange(0, BLOCK)).to(tl.int64)
            inside = s < states
            label = label_of(targets_ptr, s, inside, blank, C, target_stride[1])
            third = s + 2 < states
            skips = third & (label != label_of(targets_ptr, s + 2, third, blank, C, target_stride[1]))
            stays = tl.load(after_ptr + s, mask=inside & (back > 0), other=float("-inf"))
            moves = tl.load(after_ptr + s + 1, mask=(s + 1 < states) & (back > 0), other=float("-inf"))
            jumps = tl.load(after_ptr + s + 2, mask=skips & (back > 0), other=float("-inf"))
            ends = tl.where(s + 2 < states, float("-inf"), 0.0).to(stays.dtype)
            p = tl.load(log_probs_ptr + t * strides[0] + label * strides[2], mask=inside, other=0)
            beta = tl.where(back > 0, log_sum(stays, moves, jumps), ends) + p
            tl.store(now_ptr + s, beta, mask=inside)
            at = n * alpha_stride[0] + t * alpha_stride[1] + s * alpha_stride[2]
            ways = tl.load(alpha_ptr + at, mask=inside, other=float("-inf")) + beta
            share = tl.where(inside & (ways != float("-inf")), tl.exp(ways + loss - p), 0.0)
            tl.atomic_add(share_ptr + label, share, mask=inside & (s % 2 == 1), sem="relaxed")
            of_blank = (s % 2 == 0) & ((back > 0) | ~final_blank)
            tl.atomic_add(share_ptr + blank, tl.sum(tl.where(of_blank, share, 0.0), 0), sem="relaxed")
        tl.debug_barrier()


@triton.jit
def gradient_kernel(
    grad_ptr,
    log_probs_ptr,
    table_ptr,
    losses_ptr,
    out_ptr,
    count,
    N,
    C,
    strides,
    grad_stride,
    loss_stride,
    ZERO_INFINITY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """In the place of the shares of labels the gradient: 0 after the last step of a sequence. Where there is no share
    it is of the logarithm of 0, which matters where the others are not finite."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    c, n, t = i % C, i // C % N, i // C // N
    inside = i < count
    inside = inside & (t < tl.load(table_ptr + n, mask=inside, other=0))
    p = tl.load(log_probs_ptr + t * strides[0] + n * strides[1] + c * strides[2], mask=inside, other=0)
    loss = tl.load(losses_ptr + n * loss_stride, mask=inside, other=0)
    grad = tl.load(grad_ptr + n * grad_stride, mask=inside, other=0)
    share = tl.load(out_ptr + i, mask=inside, other=0)
    share = tl.where(share == 0, tl.exp(loss - p + float("-inf")), share)
    if ZERO_INFINITY:
        inside = inside & (loss != float("inf"))
    tl.store(out_ptr + i, tl.where(inside, (tl.exp(p) - share) * grad, 0.0), mask=i < count)


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
    sizes = [tuple(t.shape) for t in (grad, neg_log_likelihood, log_alpha)]
    if sizes[:2] != [(N,), (N,)] or sizes[2][:2] != (N, T) or sizes[2][2] < width:
        raise RuntimeError(f"gradients, losses and alpha {sizes} for {tuple(log_probs.shape)}, {longest} labels")
    out = fill(torch.empty((T, N, C), dtype=log_probs.dtype, device=log_probs.device), 0)
    beta = torch.empty((N, 2, width), dtype=log_probs.dtype, device=log_probs.device)
    BLOCK = min(max(triton.next_power_of_2(width), 64), 1024)
    shares_kernel[(N,)](
        log_probs,
        targets,
        table,
        neg_log_likelihood,
        log_alpha,
        beta,
        out,
        (N, C, width),
        blank,
        log_probs.stride(),
        label_strides(targets),
        neg_log_likelihood.stride(0),
        log_alpha.stride(),
        BLOCK=BLOCK,
        num_warps=max(BLOCK // 128, 1),
    )
    gradient_kernel[(triton.cdiv(out.numel(), 1024),)](
        grad,
        log_probs,
        table,
        neg_log_likelihood,
        out,
        out.numel(),
        N,
        C,
        log_probs.stride(),
        grad.stride(0),
        neg_log_likelihood.stride(0),
        ZERO_INFINITY=zero_infinity,
        BLOCK=1024,
    )
    return out
