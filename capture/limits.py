"""Limits on a recording: byte budgets, sample counts, and filters by phase and operator.

`Recorder` builds a `Limits` from its arguments, and the trace's manifest contains it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from traces.errors import UserError, choose_from

PHASES = ("forward", "loss", "backward", "clip", "optimizer")  # of every model of the zoo
Values: TypeAlias = Literal["full", "seeded", "stats"]
VALUES: tuple[str, ...] = get_args(Values)

Size: TypeAlias = int | str  # a number of bytes, or a text such as 100MB
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_LEAST = {"max_bytes": 0, "max_blob": 0, "queue_bytes": 1, "per_signature": 1, "skip_steps": 0, "max_signatures": 1}
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True)
class Limits:
    """Limits on one recording.

    Creating an instance raises UserError if a value is invalid.

    Attributes:
        max_bytes: Limit in bytes on all tensor contents in the trace.
        max_blob: Limit in bytes on one contiguous span of tensor contents.
        per_signature: Calls to store for each signature.
        per_op_max: Calls to store for each overload, or None for no limit.
        steps: Training steps to record, or None for all.
        skip_steps: Training steps to skip first.
        phases: Record only these phases; empty for all.
        ops: Record only overloads that match one of these patterns (`aten::mm`, `aten::*backward*`); empty for
            all.
        values: "full" stores tensor contents, "seeded" stores statistics from which similar contents can be
            drawn, and "stats" stores statistics only.
        queue_bytes: Limit in bytes on the contents in memory that wait to be written.
        max_signatures: Limit on signatures; calls with any further signature are only counted.
        dataflow: Store every call in the first step, and which values it reads, creates and writes.
    """

    max_bytes: int = 2 << 30
    max_blob: int = 256 << 20
    per_signature: int = 1
    per_op_max: int | None = None
    steps: int | None = None
    skip_steps: int = 0
    phases: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    values: Values = "full"
    queue_bytes: int = 256 << 20
    max_signatures: int = 1 << 16
    dataflow: bool = False

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            _check(name, getattr(self, name), least)
        for name in ("per_op_max", "steps"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), 1)
        if self.values not in VALUES:
            raise UserError(f"unknown values {self.values!r}{choose_from(self.values, VALUES)}")
        if self.dataflow and (self.phases or self.ops):
            raise UserError("dataflow needs every call of a step; leave out --dataflow, or --phase and --ops")


def _check(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise UserError(f"{name} {value!r} is too small or not a whole number; use {least} or more")


def parse_size(size: Size) -> int:
    """Return a size such as 100MB (decimal), 2GiB (binary) or 4096 in bytes.

    Raises:
        UserError: The text is not a size.
    """
    if not isinstance(size, str):
        return size
    match = _SIZE.fullmatch(size.strip())
    if match is None:
        raise UserError(f"{size!r} is not a size; write it like 100MB, 2GiB or 4096")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.upper()])
