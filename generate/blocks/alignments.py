"""Connectionist temporal classification (Graves et al. 2006): lengths of sequences and their labels between blanks.

A sequence of L labels is one of S = 2 L + 1 states: a blank, the first label, a blank, and so on to a blank.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import plain, plain_value, strided, walk

__all__ = ["label_of", "label_strides", "lengths_of", "log_sum", "log_sum_two", "steps_of"]


@triton.jit
def integer_list_kernel(out_ptr, values, first, n, BLOCK: tl.constexpr):
    """Elements first, first + 1, ... of `out`, of n: integers of a tuple of BLOCK."""
    lane = tl.arange(0, BLOCK)
    value = tl.zeros([BLOCK], tl.int64)
    for k in tl.static_range(BLOCK):
        value = tl.where(lane == k, plain_value(values[k]), value)
    at = plain_value(first) + lane
    tl.store(out_ptr + at, value, mask=at < plain_value(n))


def integer_list(values, device):
    """Integers from 0 on as a new tensor, int64; 64 of them a launch."""
    out = torch.empty(len(values), dtype=torch.int64, device=device)
    for first in range(0, len(values), 64):
        some = [plain(v) for v in values[first : first + 64]]
        some = tuple(some + [plain(0)] * (64 - len(some)))
        integer_list_kernel[(1,)](out, some, plain(first), plain(len(values)), BLOCK=64, num_warps=2)
    return out


@triton.jit
def lengths_kernel(input_ptr, target_ptr, table_ptr, n, steps, BLOCK: tl.constexpr):
    """The table of `lengths_of`, and behind its three rows least and largest input length, least and largest number of
    labels, and the number of all labels."""
    least, most = tl.full([], 0x7FFFFFFFFFFFFFFF, tl.int64), tl.full([], -1, tl.int64)
    fewest, longest, before = least, most, tl.full([], 0, tl.int64)
    for start in range(0, n, BLOCK):
        i = (start + tl.arange(0, BLOCK)).to(tl.int64)
        mask = i < n
        x = tl.load(input_ptr + strided(i, steps[0][0], steps[0][1][0], False, False), mask=mask, other=0).to(tl.int64)
        y = tl.load(target_ptr + strided(i, steps[1][0], steps[1][1][0], False, False), mask=mask, other=0).to(tl.int64)
        tl.store(table_ptr + i, x, mask=mask)
        tl.store(table_ptr + n + i, y, mask=mask)
        tl.store(table_ptr + 2 * n + i, before + tl.cumsum(y, 0) - y, mask=mask)
        before += tl.sum(y, 0)
        least = tl.minimum(least, tl.min(tl.where(mask, x, least), 0))
        fewest = tl.minimum(fewest, tl.min(tl.where(mask, y, fewest), 0))
        most, longest = tl.maximum(most, tl.max(x, 0)), tl.maximum(longest, tl.max(y, 0))
    tl.store(table_ptr + 3 * n, least)
    tl.store(table_ptr + 3 * n + 1, most)
    tl.store(table_ptr + 3 * n + 2, fewest)
    tl.store(table_ptr + 3 * n + 3, longest)
    tl.store(table_ptr + 3 * n + 4, before)


def lengths_of(log_probs, targets, input_lengths, target_lengths, blank):
    """A table, int64: of each sequence its number of steps, its number of labels, and how many labels come before its
    first in `targets` of one dimension; and the largest number of labels. Raises RuntimeError as ATen.

    log_probs: [T, N, C]; targets: [N, labels] or [all labels]; lengths: two lists or tensors of N integers.
    """
    if log_probs.dim() != 3 or not log_probs.numel() or targets.dim() not in (1, 2):
        raise RuntimeError(f"log-probabilities {tuple(log_probs.shape)} for targets {tuple(targets.shape)}")
    if targets.dtype not in (torch.int32, torch.int64) or not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError(f"targets of {targets.dtype}, blank {blank} of {log_probs.shape[2]} labels")
    T, N, device = log_probs.shape[0], log_probs.shape[1], log_probs.device
    if isinstance(input_lengths, torch.Tensor):
        lengths = [input_lengths, target_lengths]
        floats = any([t.is_floating_point() or t.dtype == torch.bool for t in lengths])
        if floats or input_lengths.numel() != N or target_lengths.numel() != N:
            raise RuntimeError(f"lengths {[tuple(t.shape) for t in lengths]} of {[t.dtype for t in lengths]} for {N}")
        table = torch.empty(3 * N + 5, dtype=torch.int64, device=device)
        steps = tuple([walk([t], range(t.dim()), False) for t in lengths])
        lengths_kernel[(1,)](input_lengths, target_lengths, table, N, steps, BLOCK=1024)
        least, most = table.select(0, 3 * N).item(), table.select(0, 3 * N + 1).item()
        fewest, longest = table.select(0, 3 * N + 2).item(), table.select(0, 3 * N + 3).item()
        count = table.select(0, 3 * N + 4).item()
    else:
        if len(input_lengths) != N or len(target_lengths) != N:
            raise RuntimeError(f"lengths of {len(input_lengths)} and {len(target_lengths)} sequences for {N}")
        least, most, fewest, longest = min(input_lengths), max(input_lengths), min(target_lengths), max(target_lengths)
        count, table = sum(target_lengths), None
    if min(least, fewest) < 0 or most > T:
        raise RuntimeError(f"from {least} to {most} steps of {T}, from {fewest} labels on")
    wrong = targets.shape[0] != count if targets.dim() == 1 else targets.shape[0] != N or targets.shape[1] < longest
    if wrong:
        raise RuntimeError(f"targets {tuple(targets.shape)} for {N} sequences of {count} labels, up to {longest}")
    if table is None:
        befores = [sum(target_lengths[:k]) for k in range(N)] if targets.dim() == 1 else [0] * N
        table = integer_list([*input_lengths, *target_lengths, *befores], device)
    return table, longest


def label_strides(targets):
    """From sequence to sequence, from label to label, and for each label of the sequences before, which is 0 where they
    are not joined."""
    joined = targets.dim() == 1
    return 0 if joined else targets.stride(0), targets.stride(-1), targets.stride(-1) if joined else 0


@triton.jit
def label_of(targets_ptr, state, inside, blank, count, stride):
    """The label of a state that is inside the sequence; blank, too, for labels that are none of the `count`."""
    label = tl.load(targets_ptr + state // 2 * stride, mask=inside & (state % 2 == 1), other=blank).to(tl.int64)
    return tl.where((label >= 0) & (label < count), label, blank)


@triton.jit
def log_sum(x, y, z):
    """log(exp(x) + exp(y) + exp(z)) of numbers that may be minus infinity."""
    most = tl.maximum(tl.maximum(x, y), z)
    most = tl.where(most == float("-inf"), 0.0, most)
    return tl.log(tl.exp(x - most) + tl.exp(y - most) + tl.exp(z - most)) + most


@triton.jit
def log_sum_two(x, y):
    """log(exp(x) + exp(y)) of numbers that may be minus infinity."""
    most = tl.maximum(x, y)
    most = tl.where(most == float("-inf"), 0.0, most)
    return tl.log(tl.exp(x - most) + tl.exp(y - most)) + most


@triton.jit
def steps_of(ptr, left, stride, mask, AHEAD: tl.constexpr):
    """What lies there and at the AHEAD - 1 steps after it, `stride` apart, of which `left` are left: a tuple."""
    found = ()
    for i in tl.static_range(AHEAD):
        found = found + (tl.load(ptr, mask=mask & (i < left), other=0),)
        ptr += stride
    return found
