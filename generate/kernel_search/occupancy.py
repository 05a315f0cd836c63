"""Compute how many program instances a multiprocessor holds at once, and the resource that limits the number."""

from __future__ import annotations

from dataclasses import dataclass

REGISTERS = 65_536  # per multiprocessor
_REGISTER_UNIT = 256  # granularity of register allocation per warp
_WARP_UNIT = 4  # granularity of warp allocation: registers are split among four sub-partitions
_SHARED_UNIT = 128  # granularity of shared memory allocation, in bytes
_RESERVED = 1024  # bytes of shared memory that the system reserves per program instance


@dataclass(frozen=True)
class _Multiprocessor:
    """Limits per multiprocessor: warps, program instances and bytes of shared memory."""

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
    """The occupancy of a multiprocessor.

    Attributes:
        programs: Program instances that fit at once.
        share: Share of the multiprocessor's warps that they use.
        by: The resource that limits the number.
    """

    programs: int
    share: float
    by: str


def occupancy(target: str, warps: int, registers: int, shared: int) -> Occupancy | None:
    """Return the occupancy for a kernel; None if the target is unknown.

    programs = min(P, W // w, floor(R / (256 ceil(32 r / 256)) / 4) 4 // w, S // (128 ceil((s + 1024) / 128))).
    Here P, W, R = 65,536 and S are the multiprocessor's limits, and w, r and s are the kernel's requirements.
    These are the rules in NVIDIA's occupancy calculator (Nsight Compute documentation, "Occupancy Calculator")
    for compute capability 8.0 and later.

    Args:
        target: Target, such as sm_90.
        warps: Warps per program instance.
        registers: Registers per thread.
        shared: Shared memory per program instance, in bytes.
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
