"""Scratch memory of kernels, such as tensor descriptors are made in: Triton's launchers ask an allocator for it, which
every thread has to be given anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def allow() -> None:
    """Have launches of this thread allocate scratch memory on the current device, unless it has an allocator."""
    import triton
    from triton.runtime import _allocation

    if isinstance(_allocation._allocator.get(), _allocation.NullAllocator):
        triton.set_allocator(_allocated)


def launcher(kernel: Any) -> Callable[..., None]:
    """How a compiled kernel is launched, from any thread."""
    run: Callable[..., None] = kernel.run
    if not getattr(getattr(kernel, "metadata", None), "global_scratch_size", 0):
        return run

    def launch(*arguments: Any) -> None:
        allow()
        run(*arguments)

    return launch


def _allocated(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """size in bytes; what PyTorch allocates is aligned enough."""
    return torch.empty(size, dtype=torch.int8, device="cuda")
