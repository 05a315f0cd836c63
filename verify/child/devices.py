"""Prepare a PyTorch device before the sandbox closes, and record launches on it.

The module is independent of vendors: `torch.accelerator` names the device, and Triton's driver launches.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from verify.child.guards import check_arguments, launching, notes
from verify.child.launches import grid_of, note, passed
from verify.child.loading import load_wrappers
from verify.child.probe import KERNEL
from verify.child.tuning import patch_autotuners
from verify.child.witness import witness


def start(device: str, directory: Path) -> None:
    """Initialise the device and run one kernel on it, so that Triton has built everything it needs to launch."""
    import triton

    torch.accelerator.set_device_index(torch.device(device).index)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=device))
    start_directory = directory / "start"
    start_directory.mkdir()
    load_wrappers({"kernel": KERNEL}, start_directory)["kernel"](torch.arange(64.0, device=device)).cpu()


def patch_launches() -> None:
    """Record every launch in this process before it runs."""
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            notes.kernels.append(self.__name__)
            witness.launch(self.__name__)
        constexprs = {p.name for p in self.params if p.is_constexpr}
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        check_arguments(self.__name__, {n: v for n, v in named.items() if n in self.arg_names}, constexprs)
        arguments = passed(self.params, named)
        grid = grid_of(grid, arguments)
        note(self.__name__, grid, arguments)
        with launching():
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    JITFunction.run = launch
    patch_autotuners()


def is_lost(device: str) -> bool:
    """Return True if an error has made the device unusable for this process."""
    try:
        torch.accelerator.synchronize(torch.device(device))
    except RuntimeError:
        return True
    return False
