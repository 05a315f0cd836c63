"""What a compiled kernel takes of a GPU: registers, spills, shared memory."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

_USED = re.compile(r"REG:(\d+) STACK:(\d+)")


def resources(compiled: Any) -> dict[str, int]:
    """warps, registers, spills and shared of what Triton compiled for a CUDA target: as the driver says once it is
    loaded, else as cuobjdump reads them in the cubin, which takes no GPU. Spills are registers of 4 bytes."""
    metadata = compiled.metadata
    found = {"warps": int(metadata.num_warps), "shared": int(metadata.shared)}
    if getattr(compiled, "n_regs", None):
        return {**found, "registers": int(compiled.n_regs), "spills": int(compiled.n_spills)}
    registers, spills = in_cubin(compiled.asm["cubin"]) if "cubin" in compiled.asm else (0, 0)
    return {**found, "registers": registers, "spills": spills}


def in_cubin(cubin: bytes) -> tuple[int, int]:
    """Registers of a thread, and 4-byte words of its stack, which is where registers are spilled to."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "kernel.cubin"
        file.write_bytes(cubin)
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    used = _USED.search(done.stdout)
    if used is None:
        raise RuntimeError(f"cuobjdump tells no registers: {(done.stderr or done.stdout).strip()[:200]}")
    return int(used[1]), int(used[2]) // 4
