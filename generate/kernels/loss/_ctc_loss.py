"""aten::_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0,
    bool zero_infinity=False) -> (Tensor, Tensor)
aten::_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0,
    bool zero_infinity=False) -> (Tensor, Tensor)

Graves et al. 2006, equations 5 to 8: alpha of a state at a step is the probability of all ways that lead there. A
program takes a sequence, step by step, with a lane for each state; states that a sequence has not, and steps after its
last, have the logarithm of 0. log_probs: [T, N, C]; results: the losses [N] and the logarithms of alpha
[N, T, 2 * labels + 1], of as many labels as the longest has. zero_infinity is for the gradient alone.
"""

import torch
import triton
import triton.language as tl
from blocks.alignments import label_of, label_strides, lengths_of, log_sum

OVERLOADS = ("aten::_ctc_loss", "aten::_ctc_loss.Tensor")
DTYPES = ("float32", "float64")


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
    BLOCK: tl.constexpr,
):
    """sizes: T, N, C and the number of states; target_stride: `label_strides`."""
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
            skips = (
                inside & (s > 1) & (label != label_of(targets_ptr, s - 2, inside & (s > 1), blank, C, target_stride[1]))
            )
            before_ptr = alpha_ptr + (t - 1) * width + s
            stays = tl.load(before_ptr, mask=inside & (t > 0), other=float("-inf"))
            moves = tl.load(before_ptr - 1, mask=inside & (t > 0) & (s > 0), other=float("-inf"))
            jumps = tl.load(before_ptr - 2, mask=skips & (t > 0), other=float("-inf"))
            ways = tl.where(t > 0, log_sum(stays, moves, jumps), tl.zeros_like(stays))
            p = tl.load(log_probs_ptr + t * strides[0] + label * strides[2], mask=inside, other=0)
            there = inside & ((t > 0) | (s < 2))
            tl.store(alpha_ptr + t * width + s, tl.where(there, ways + p, float("-inf")), mask=s < width)
        tl.debug_barrier()
    last = 2 * labels - tl.arange(0, 2)
    ends = tl.load(alpha_ptr + (steps - 1) * width + last, mask=(last >= 0) & (steps > 0), other=float("-inf"))
    most = tl.max(ends, 0)
    most = tl.where(most == float("-inf"), 0.0, most)
    found = tl.log(tl.sum(tl.exp(ends - most), 0)) + most
    tl.store(losses_ptr + n, tl.where((steps == 0) & (labels == 0), 0.0, -found))


def wrapper(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    table, longest = lengths_of(log_probs, targets, input_lengths, target_lengths, blank)
    (T, N, C), width = log_probs.shape, 2 * longest + 1
    losses = torch.empty(N, dtype=log_probs.dtype, device=log_probs.device)
    alpha = torch.empty((N, T, width), dtype=log_probs.dtype, device=log_probs.device)
    BLOCK = min(max(triton.next_power_of_2(width), 64), 1024)
    alpha_kernel[(N,)](
        log_probs,
        targets,
        table,
        losses,
        alpha,
        (T, N, C, width),
        blank,
        log_probs.stride(),
        label_strides(targets),
        BLOCK=BLOCK,
        num_warps=max(BLOCK // 128, 1),
    )
    return losses, alpha
