"""Answer what a wrapper may ask about its GPU, on machines without one.

The answers change from one repeat of a case to the next, so no result may depend on them: a wrapper that does one thing
on a GPU and another elsewhere has to be right in both ways.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from verify.child.unspecified import unspecified

# Multiprocessors, by seed: an H100's, fewer than a kernel may have programs, and a number that divides little.
_MULTIPROCESSORS = (132, 4, 7)


def pretend() -> None:
    """Let tensors of this process lie on a GPU, and tell its number of multiprocessors."""

    def properties(device: Any = None) -> SimpleNamespace:
        return SimpleNamespace(multi_processor_count=_MULTIPROCESSORS[unspecified.seed % len(_MULTIPROCESSORS)])

    torch.cuda.get_device_properties = properties  # type: ignore[assignment]
    torch.Tensor.is_cuda = property(lambda self: unspecified.seed % 2 == 0)  # type: ignore[assignment]
