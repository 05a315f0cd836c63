"""Sequence lengths and label states for the CTC loss (connectionist temporal classification, Graves et al. 2006).

Used by the forward and backward kernels of the CTC loss. A sequence with L labels has S = 2 L + 1 states: a
blank, the first label, a blank, and so on, ending with a blank.
"""

import torch
import triton
import triton.language as tl
from blocks.offsets import plain, plain_value, strided, walk

__all__ = ["label_of", "label_strides", "lengths_of", "log_sum", "log_sum_two", "steps_of"]

# Integers that one launch stores. They are arguments, and the kernel unrolls one step for each.
INTEGERS_PER_LAUNCH = 64


@triton.jit
def integer_list_kernel(out_ptr, values, first, n, BLOCK: tl.constexpr):
    """Store a tuple of BLOCK integers to out[first], out[first + 1], ..., up to out[n - 1].

    Args:
        out_ptr: [n] int64, written.
        values: Tuple of BLOCK integers encoded by `plain`.
        first: First element to write, encoded by `plain`.
        n: Length of `out`, encoded by `plain`.
        BLOCK: Integers per launch.
    """
    lane = tl.arange(0, BLOCK)
    value = tl.zeros([BLOCK], tl.int64)
    for k in tl.static_range(BLOCK):
        value = tl.where(lane == k, plain_value(values[k]), value)
    at = plain_value(first) + lane
    tl.store(out_ptr + at, value, mask=at < plain_value(n))


def integer_list(values, device):
    """Return a new int64 tensor with these non-negative integers, written by launches of INTEGERS_PER_LAUNCH each."""
    out = torch.empty(len(values), dtype=torch.int64, device=device)
    BLOCK = INTEGERS_PER_LAUNCH
    for first in range(0, len(values), BLOCK):
        some = [plain(v) for v in values[first : first + BLOCK]]
        some = tuple(some + [plain(0)] * (BLOCK - len(some)))  # one tuple length, so that one variant serves all
        integer_list_kernel[(1,)](out, some, plain(first), plain(len(values)), BLOCK=BLOCK, num_warps=2)
    return out


@triton.jit
def lengths_kernel(input_ptr, target_ptr, table_ptr, n, steps, BLOCK: tl.constexpr):
    """Write the table that `lengths_of` returns, followed by five statistics.

    A single program instance runs the kernel, because the offsets need a running sum over all sequences.

    Args:
        input_ptr: [n] input lengths, read.
        target_ptr: [n] target lengths, read.
        table_ptr: [3 * n + 5] int64, written: the three rows of `lengths_of`, then the least and the largest
            input length, the least and the largest label count, and the total label count.
        n: Sequence count.
        steps: `walk` over the input lengths and the target lengths.
        BLOCK: Sequences per step.
    """
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
    """Check the arguments of the CTC loss and return a length table and the largest label count.

    Args:
        log_probs: [T, N, C].
        targets: int32 or int64, [N, labels] padded, or [all labels] concatenated.
        input_lengths: List or tensor with N integers.
        target_lengths: List or tensor with N integers, like `input_lengths`.
        blank: Class number for the blank.

    Returns:
        (table, longest). The int64 table has three rows of N: steps per sequence, labels per sequence, and the
            offset of the sequence's first label in concatenated targets. A table from tensors has five more
            elements (see `lengths_kernel`). `longest` is the largest label count in a sequence.

    Raises:
        RuntimeError: As ATen does, if shapes, dtypes or lengths do not fit.
    """
    if log_probs.dim() != 3 or not log_probs.numel() or targets.dim() not in (1, 2):
        raise RuntimeError(
            f"log_probs must be [T, N, C], targets [N, S] or [S]: {tuple(log_probs.shape)} and {tuple(targets.shape)}"
        )
    if targets.dtype not in (torch.int32, torch.int64) or not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError(
            f"targets must be int32 or int64 and blank in [0, {log_probs.shape[2]}), got {targets.dtype} and {blank}"
        )
    T, N, device = log_probs.shape[0], log_probs.shape[1], log_probs.device
    if isinstance(input_lengths, torch.Tensor):
        lengths = [input_lengths, target_lengths]
        floats = any([t.is_floating_point() or t.dtype == torch.bool for t in lengths])
        if floats or input_lengths.numel() != N or target_lengths.numel() != N:
            raise RuntimeError(
                f"expected {N} integer lengths, got {[tuple(t.shape) for t in lengths]}, {[t.dtype for t in lengths]}"
            )
        table = torch.empty(3 * N + 5, dtype=torch.int64, device=device)
        steps = tuple([walk([t], range(t.dim()), False) for t in lengths])
        lengths_kernel[(1,)](input_lengths, target_lengths, table, N, steps, BLOCK=1024)
        least, most = table.select(0, 3 * N).item(), table.select(0, 3 * N + 1).item()
        fewest, longest = table.select(0, 3 * N + 2).item(), table.select(0, 3 * N + 3).item()
        count = table.select(0, 3 * N + 4).item()
    else:
        if len(input_lengths) != N or len(target_lengths) != N:
            raise RuntimeError(
                f"expected lengths for {N} sequences, got {len(input_lengths)} and {len(target_lengths)}"
            )
        least, most, fewest, longest = min(input_lengths), max(input_lengths), min(target_lengths), max(target_lengths)
        count, table = sum(target_lengths), None
    if min(least, fewest) < 0 or most > T:
        raise RuntimeError(
            f"input lengths must be in [0, {T}] and target lengths >= 0, got {least} to {most} and at least {fewest}"
        )
    wrong = targets.shape[0] != count if targets.dim() == 1 else targets.shape[0] != N or targets.shape[1] < longest
    if wrong:
        raise RuntimeError(
            f"targets {tuple(targets.shape)} do not fit {N} sequences with {count} labels, the longest {longest}"
        )
    if table is None:
        offsets = [sum(target_lengths[:k]) for k in range(N)] if targets.dim() == 1 else [0] * N
        table = integer_list([*input_lengths, *target_lengths, *offsets], device)
    return table, longest


def label_strides(targets):
    """Return the strides of targets between sequences, between labels, and per label of the sequences before.

    The first is 0 for concatenated targets (one dimension), and the last is 0 for padded targets (two
    dimensions).
    """
    joined = targets.dim() == 1
    return 0 if joined else targets.stride(0), targets.stride(-1), targets.stride(-1) if joined else 0


@triton.jit
def label_of(targets_ptr, state, inside, blank, count, stride):
    """Return the class number of a state: its label for odd states, else blank.

    Also return blank for a state outside the sequence, and for a label that is not in [0, count).
    """
    label = tl.load(targets_ptr + state // 2 * stride, mask=inside & (state % 2 == 1), other=blank).to(tl.int64)
    return tl.where((label >= 0) & (label < count), label, blank)


@triton.jit
def log_sum(x, y, z):
    """Return log(exp(x) + exp(y) + exp(z)), in which each argument may be minus infinity."""
    most = tl.maximum(tl.maximum(x, y), z)
    # if all are minus infinity, their difference would be NaN
    most = tl.where(most == float("-inf"), 0.0, most)
    return tl.log(tl.exp(x - most) + tl.exp(y - most) + tl.exp(z - most)) + most


@triton.jit
def log_sum_two(x, y):
    """Return log(exp(x) + exp(y)), in which each argument may be minus infinity."""
    most = tl.maximum(x, y)
    most = tl.where(most == float("-inf"), 0.0, most)
    return tl.log(tl.exp(x - most) + tl.exp(y - most)) + most


@triton.jit
def steps_of(ptr, left, stride, mask, AHEAD: tl.constexpr):
    """Return a tuple of AHEAD values loaded from ptr on, `stride` elements apart.

    Values beyond the first `left` ones are 0, and so are all if the mask is false.
    """
    values = ()
    for i in tl.static_range(AHEAD):
        values = values + (tl.load(ptr, mask=mask & (i < left), other=0),)
        ptr += stride
    return values
