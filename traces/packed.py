"""`_pack_padded_sequence` composed from other operators, for devices without a kernel.

PyTorch offers it as one operator only. Every device runs this function instead.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor


def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """Pack padded sequences for a recurrent network, as `torch._pack_padded_sequence` does.

    Args:
        input: [T, B, ...], or [B, T, ...] if `batch_first`.
        lengths: [B] in host memory, in decreasing order.
        batch_first: True if the batch is the first dimension.

    Returns:
        tuple: The time steps, [sum(lengths), ...], step 0 from all sequences first; and how many sequences have
        each step, int64 [longest] in host memory.

    Raises:
        RuntimeError: Under the same conditions as `torch._pack_padded_sequence`.
    """
    steps = input.transpose(0, 1) if batch_first else input
    wanted = lengths.tolist()
    if lengths.dim() != 1 or len(wanted) != steps.shape[1] or not wanted:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size {steps.shape[1]}, but got {len(wanted)}")
    if min(wanted) <= 0 or any(a < b for a, b in itertools.pairwise(wanted)) or wanted[0] > steps.shape[0]:
        raise RuntimeError(
            f"`lengths` has to be in decreasing order, at most {steps.shape[0]} and greater than 0; got {wanted}."
            " Of others pass `enforce_sorted=False` to pack_padded_sequence"
        )
    parts, sizes, done = [], [], 0
    # Each iteration handles the run of steps that exactly `batch` sequences have.
    for batch in range(len(wanted), 0, -1):
        if wanted[batch - 1] > done:
            run = steps[done : wanted[batch - 1], :batch]
            parts.append(run.reshape(-1, *steps.shape[2:]))
            sizes += [batch] * run.shape[0]
            done = wanted[batch - 1]
    return torch.cat(parts), torch.tensor(sizes, dtype=torch.int64)
