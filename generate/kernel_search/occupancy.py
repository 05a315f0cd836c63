"""How many programs of a compiled kernel a multiprocessor holds at once, and what keeps it from holding more."""

from __future__ import annotations

from dataclasses import dataclass

REGISTERS = 65_536  # of a multiprocessor
_REGISTER_UNIT = 256  # registers that a warp is given at a time
_WARP_UNIT = 4  # warps of a multiprocessor share its registers in four parts
_SHARED_UNIT = 128  # bytes
_RESERVED = 1024  # bytes of shared memory that the system takes of each program


@dataclass(frozen=True)
class _Multiprocessor:
    warps: int
    programs: int
    shared: int  # bytes


# CUDA C++ programming guide, table "Technical specifications per compute capability".
_KNOWN = {
    "sm_80": _Multiprocessor(64, 32, 164 << 10),
    "sm_86": _Multiprocessor(48, 16, 100 << 10),
    "sm_89": _Multiprocessor(48, 24, 100 << 10),
    "sm_90": _Multiprocessor(64, 32, 228 << 10),
    "sm_100": _Multiprocessor(64, 32, 228 << 10),
}
TARGETS = tuple(_KNOWN)


@dataclass(frozen=True)
class Occupancy:
    """programs: that a multiprocessor holds at once. share: of its warps that are theirs. by: what allows no more."""

    programs: int
    share: float
    by: str


def occupancy(target: str, warps: int, registers: int, shared: int) -> Occupancy | None:
    """Of programs of so many warps, registers a thread and bytes of shared memory; None for a target nobody knows.

    programs = min(P, W // w, floor(R / (256 ceil(32 r / 256)) / 4) 4 // w, S // (128 ceil((s + 1024) / 128))), where
    P, W, R = 65,536 and S are what a multiprocessor has, w, r and s what a program takes: the rules of NVIDIA's
    occupancy calculator (Nsight Compute documentation, "Occupancy Calculator") for compute capability 8.0 and later.
    """
    known = _KNOWN.get(target)
    if known is None:
        return None
    of_warp = _REGISTER_UNIT * -(-32 * max(registers, 1) // _REGISTER_UNIT)
    with_registers = REGISTERS // of_warp // _WARP_UNIT * _WARP_UNIT
    of_program = _SHARED_UNIT * -(-(shared + _RESERVED) // _SHARED_UNIT)
    allowed = {
        "programs": known.programs,
        "warps": known.warps // warps,
        "registers": with_registers // warps,
        "shared memory": known.shared // of_program,
    }
    by = min(allowed, key=lambda name: allowed[name])
    return Occupancy(allowed[by], allowed[by] * warps / known.warps, by)
