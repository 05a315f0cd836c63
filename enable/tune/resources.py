"""Read the GPU resources of a compiled kernel: registers, spills and shared memory."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_USED = re.compile(r"REG:(\d+) STACK:(\d+)")


def resources(compiled: Any) -> dict[str, int]:
    """Return `warps`, `registers`, `spills` and `shared` of a kernel that Triton compiled for a CUDA target.

    The driver reports registers and spills of a loaded kernel. Otherwise cuobjdump reads them from the cubin, which
    needs no GPU. Spills count registers of 4 bytes, and `shared` is in bytes.
    """
    metadata = compiled.metadata
    launch_resources = {"warps": int(metadata.num_warps), "shared": int(metadata.shared)}
    if getattr(compiled, "n_regs", None):
        return {**launch_resources, "registers": int(compiled.n_regs), "spills": int(compiled.n_spills)}
    registers, spills = in_cubin(compiled.asm["cubin"]) if "cubin" in compiled.asm else (0, 0)
    return {**launch_resources, "registers": registers, "spills": spills}


def in_cubin(cubin: bytes) -> tuple[int, int]:
    """Return the registers per thread and the stack's 4-byte words, which hold spilled registers."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "kernel.cubin"
        file.write_bytes(cubin)
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(file)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    used = _USED.search(process.stdout)
    if used is None:
        raise RuntimeError(f"cuobjdump tells no registers: {(process.stderr or process.stdout).strip()[:200]}")
    return int(used[1]), int(used[2]) // 4
