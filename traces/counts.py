"""How often calls of each signature occur in a recording, by phase and by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from blake3 import blake3


@dataclass
class SignatureCount:
    """How often calls of one signature occurred, and which of them are stored.

    arguments: shapes, strides, dtypes and scalars as text. phases: calls by phase. steps: runs of consecutive steps
    with the same number of calls, as [first step, last step, calls in each]. samples: ids of the stored calls. device:
    where the calls ran. host: it is the CPU beside a device whose calls look alike, as those of `sim` do.
    """

    overload: str
    kind: str
    arguments: str
    device: str = "cpu"
    host: bool = False
    phases: Counter[str] = field(default_factory=Counter)
    steps: list[list[int]] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    _step: int = 0
    _in_step: int = 0  # calls in it
    _kept: tuple[Counter[str], list[list[int]]] | None = None

    @cached_property
    def key(self) -> str:
        """Identity across traces: 16 hexadecimal digits of the blake3 of overload and arguments."""
        apart = " on the host" if self.host else ""
        return blake3(f"{self.overload}{self.arguments}{apart}".encode()).hexdigest()[:16]

    @property
    def calls(self) -> int:
        """In all phases and steps."""
        return self.phases.total()

    def count(self, phase: str, step: int, calls: int = 1) -> None:
        """So many more calls. step: the one of the last calls, or a later one."""
        if step != self._step:
            self._end_step()
            self._step = step
        self.phases[phase] += calls
        self._in_step += calls

    def count_alike(self, phases: Mapping[str, int], first: int, last: int) -> None:
        """So many more calls by phase in each of these steps. first: as of `count`."""
        for phase, calls in phases.items():
            self.count(phase, first, calls)
            self.phases[phase] += calls * (last - first)
        if last > first:
            self._end_step()
            self._step, self._in_step = last, sum(phases.values())
            self._add_run(first + 1, last - 1, self._in_step)

    def _end_step(self) -> None:
        self._add_run(self._step, self._step, self._in_step)
        self._in_step = 0

    def _add_run(self, first: int, last: int, calls: int) -> None:
        if not calls or last < first:
            return
        run = self.steps[-1] if self.steps else [0, -1, 0]
        if run[1] == first - 1 and run[2] == calls:
            run[1] = last
        else:
            self.steps.append([first, last, calls])

    def keep(self) -> None:
        """Note the counts, to which `cut` goes back."""
        self._end_step()
        self._kept = Counter(self.phases), [list(run) for run in self.steps]

    def cut(self, stored: int) -> bool:
        """Go back to the counts that were noted, and to the first `stored` calls; whether there were any."""
        self.phases, self.steps = self._kept or (Counter(), [])
        self._in_step = 0
        self.samples = [call for call in self.samples if call < stored]
        return self._kept is not None

    def merge(self, first: int) -> None:
        """Make one step of those up to this number; later ones move up to it."""
        self._end_step()
        merged = sum(calls * (min(last, first) - begin + 1) for begin, last, calls in self.steps if begin <= first)
        later = [[max(begin - first, 1), last - first, calls] for begin, last, calls in self.steps if last > first]
        self.steps = ([[0, 0, merged]] if merged else []) + later

    def as_json(self) -> dict[str, Any]:
        """What signatures.json holds under this signature's key."""
        self._end_step()
        shown = ("overload", "kind", "arguments", "calls", "phases", "steps", "samples", "device")
        return {name: getattr(self, name) for name in shown}
