"""What is known of a kernel on an overload and a platform: the strongest verdict of each case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verify.outcome import Outcome, Verdict

ENOUGH = 5  # independent cases; a kernel that passed fewer is marked wherever it is shown


class Passed(NamedTuple):
    """What is kept of a case that passed, as of Verdict."""

    dtypes: str
    signature: str
    kind: str
    variants: str


@dataclass(frozen=True)
class Standing:
    """What this judge knows of a kernel on one overload and platform: the strongest verdict of each case, by its id."""

    passed: dict[str, Passed] = field(default_factory=dict)
    failed: dict[str, Verdict] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """How many cases."""
        return len(self.passed) + len(self.failed)

    @property
    def independent(self) -> int:
        """How many of the cases that passed differ in shapes, strides, dtypes or numbers."""
        return len({v.signature for v in self.passed.values()})

    @property
    def verified(self) -> frozenset[str]:
        """Floating dtypes of which every case passed; "" stands for the cases that name none."""
        passed, failed = ({v.dtypes for v in of.values()} for of in (self.passed, self.failed))
        return frozenset({d for told in passed for d in told.split(",")} - {d for t in failed for d in t.split(",")})

    @property
    def failures(self) -> dict[str, str]:
        """What speaks against the kernel, in a line each, by floating dtype as in `verified`."""
        found: defaultdict[str, list[Verdict]] = defaultdict(list)
        for verdict in self.failed.values():
            for dtype in verdict.dtypes.split(","):
                found[dtype].append(verdict)
        return {dtype: self._told(failed) for dtype, failed in found.items()}

    @property
    def failure(self) -> str:
        """The same of all cases; empty if there is nothing."""
        return self._told(list(self.failed.values())) if self.failed else ""

    def _told(self, failed: Sequence[Verdict]) -> str:
        return f"{failed[0].outcome} in {len(failed)} of {self.judged} judged cases: {failed[0].detail}"

    @property
    def variants(self) -> frozenset[str]:
        """What Triton compiles for the cases that passed, on one target."""
        return frozenset(name for v in self.passed.values() for name in v.variants.split(",") if name)

    @property
    def kinds(self) -> frozenset[str]:
        """Of the calls that passed, as in verify/cases/kinds.py."""
        return frozenset(v.kind for v in self.passed.values() if v.kind)


class Standings(dict[tuple[tuple[str, ...], str], Standing]):
    """By kernels and overload, as of Identity; an empty one where nothing is known.

    tried: keys of the kernel files that passed a whole trial. platform, platform_typed: as of Platform.
    """

    tried: frozenset[str] = frozenset()
    platform = platform_typed = ""

    def __missing__(self, key: tuple[tuple[str, ...], str]) -> Standing:
        return Standing()


def is_few(independent: int | None) -> bool:
    """Whether a pass on so many independent cases has to be marked. None: nobody counted."""
    return independent is not None and independent < ENOUGH


def marked(outcome: Outcome, independent: int | None) -> str:
    """The outcome as people read it: a pass that rests on few independent cases says so."""
    few = outcome is Outcome.PASS and is_few(independent)
    return f"{outcome}, {independent} case{'s' * (independent != 1)}" if few else str(outcome)
