"""Allocate scratch memory for kernels, which Triton uses for tensor descriptors, for example.

Triton's launchers get it from an allocator, which must be set in each thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def allow() -> None:
    """Set an allocator for scratch memory on the current device in this thread, unless it has one."""
    import triton
    from triton.runtime import _allocation

    if isinstance(_allocation._allocator.get(), _allocation.NullAllocator):
        triton.set_allocator(_allocated)


def launcher(kernel: Any) -> Callable[..., None]:
    """Return a function that launches a compiled kernel from any thread."""
    run: Callable[..., None] = kernel.run
    if not getattr(getattr(kernel, "metadata", None), "global_scratch_size", 0):
        return run

    def launch(*arguments: Any) -> None:
        allow()
        run(*arguments)

    return launch


def _allocated(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Allocate `size` bytes; PyTorch's allocations are aligned enough."""
    return torch.empty(size, dtype=torch.int8, device=torch.accelerator.current_accelerator())
