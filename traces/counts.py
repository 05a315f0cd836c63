"""Call counts for each signature in a recording, by phase and by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from blake3 import blake3


@dataclass
class SignatureCount:
    """Call counts and stored-call ids for one signature.

    Attributes:
        overload: Full overload name.
        kind: See `traces.overloads.kind`.
        arguments: Shapes, strides, dtypes and scalars as text.
        device: Device on which the calls ran.
        host: True for CPU calls recorded beside a device whose calls have equal argument text, as `sim` calls do.
        phases: Calls by phase.
        steps: Runs of consecutive steps with equal counts, as [first step, last step, calls in each].
        samples: Ids of the stored calls.
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
    _in_step: int = 0  # calls in `_step` so far
    _kept: tuple[Counter[str], list[list[int]]] | None = None

    @cached_property
    def key(self) -> str:
        """Return the identity across traces: 16 hexadecimal digits from the blake3 of overload and arguments."""
        suffix = " on the host" if self.host else ""
        return blake3(f"{self.overload}{self.arguments}{suffix}".encode()).hexdigest()[:16]

    @property
    def calls(self) -> int:
        """Return the number of calls in all phases and steps."""
        return self.phases.total()

    def count(self, phase: str, step: int, calls: int = 1) -> None:
        """Add calls. `step` must not precede the latest counted step."""
        if step != self._step:
            self._end_step()
            self._step = step
        self.phases[phase] += calls
        self._in_step += calls

    def count_alike(self, phases: Mapping[str, int], first: int, last: int) -> None:
        """Add the same calls by phase to each step from `first` to `last`.

        As for `count`, `first` must not precede the latest counted step.
        """
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
        """Save the counts, so that `cut` can restore them."""
        self._end_step()
        self._kept = Counter(self.phases), [list(run) for run in self.steps]

    def cut(self, stored: int) -> bool:
        """Restore the saved counts and drop samples from call `stored` on. Return False if nothing was saved."""
        self.phases, self.steps = self._kept or (Counter(), [])
        self._in_step = 0
        self.samples = [call for call in self.samples if call < stored]
        return self._kept is not None

    def merge(self, first: int) -> None:
        """Merge all steps up to `first` into step 0, and renumber the later ones."""
        self._end_step()
        merged = sum(calls * (min(last, first) - begin + 1) for begin, last, calls in self.steps if begin <= first)
        later = [[max(begin - first, 1), last - first, calls] for begin, last, calls in self.steps if last > first]
        self.steps = ([[0, 0, merged]] if merged else []) + later

    def as_json(self) -> dict[str, Any]:
        """Return the entry for this signature in signatures.json."""
        self._end_step()
        names = ("overload", "kind", "arguments", "calls", "phases", "steps", "samples", "device")
        return {name: getattr(self, name) for name in names}
