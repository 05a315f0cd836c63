"""What the recorder may take, and from which calls: budgets, samples, filters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from traces.errors import UserError

Values: TypeAlias = Literal["full", "seeded", "stats"]
VALUES: tuple[str, ...] = get_args(Values)

Size: TypeAlias = int | str  # bytes, or a text such as 100MB
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?", re.IGNORECASE)
_LEAST = {"max_bytes": 0, "max_blob": 0, "queue_bytes": 1, "per_signature": 1, "skip_steps": 0, "max_signatures": 1}
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True)
class Limits:
    """What is recorded of a program.

    max_bytes: all tensor contents of the trace. max_blob: one contiguous span of them. per_signature: stored calls of
    each signature. per_op_max: stored calls of each overload, None for no limit. steps: training steps to record, None
    for all. skip_steps: training steps to let pass first. phases, ops: record only these phases, or the overloads that
    match one of these patterns (`aten::mm`, `aten::*backward*`); empty for all. values: "full" stores contents,
    "seeded" statistics from which like contents can be drawn, "stats" statistics only. queue_bytes: contents in memory
    that wait to be written. max_signatures: after so many, calls with yet another one are only counted. dataflow: of
    the first step, store every call, and which values it reads, makes and writes. Raises UserError on values that make
    no sense.
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
            raise UserError(f"values {self.values!r} is not one of: {', '.join(VALUES)}")
        if self.dataflow and (self.phases or self.ops):
            raise UserError("dataflow needs every call of a step; leave out --dataflow, or --phase and --ops")


def _check(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or value < least:
        raise UserError(f"{name} {value!r} is too small or not a whole number; use {least} or more")


def parse_size(size: Size) -> int:
    """Return the bytes of a size such as 100MB (decimal), 2GiB (binary) or 4096. Raises UserError."""
    if not isinstance(size, str):
        return size
    match = _SIZE.fullmatch(size.strip())
    if match is None:
        raise UserError(f"{size!r} is not a size; write it like 100MB, 2GiB or 4096")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.upper()])
