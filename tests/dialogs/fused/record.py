"""The trace that the dialog about attention in parts began with."""

from __future__ import annotations

from pathlib import Path

import torch

from capture import Recorder

SIZES = ((2, 8, 16, 4), (6, 5, 7, 3), (3, 16, 16, 8), (2, 3, 9, 16), (4, 12, 6, 5), (2, 33, 20, 10))  # B, N, M, D


def record_attention(path: Path) -> None:
    """softmax(q k^T / 4) v of several sizes, none of which is 1, the same in every process."""
    generator = torch.Generator().manual_seed(0)
    kept = []
    path.parent.mkdir(parents=True)
    with Recorder(path, dataflow=True) as recorder:
        for b, n, m, d in SIZES:
            with recorder.pause():
                q, k, v = (torch.randn(b, rows, d, generator=generator) for rows in (n, m, m))
            kept.append(torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.25, -1), v))
