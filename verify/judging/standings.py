"""Summarise stored verdicts on a kernel for an overload and a platform: the strongest verdict on each case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verify.outcome import Outcome, Verdict

ENOUGH = 5  # independent cases; a kernel that passed fewer is marked in all output
STRONG, FEW_CASES = "strong", "few cases"  # the evidence for a pass


class Passed(NamedTuple):
    """Stored facts about a passed case, as in Verdict."""

    dtypes: str
    signature: str
    kind: str
    variants: str


@dataclass(frozen=True)
class Standing:
    """Stored verdicts on a kernel for one overload and platform: the strongest verdict on each case, by id."""

    passed: dict[str, Passed] = field(default_factory=dict)
    failed: dict[str, Verdict] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """How many cases were judged."""
        return len(self.passed) + len(self.failed)

    @property
    def independent(self) -> int:
        """How many passed cases differ in shapes, strides, dtypes or numbers."""
        return len({v.signature for v in self.passed.values()})

    @property
    def verified(self) -> frozenset[str]:
        """Floating dtypes in which every case passed; "" represents cases without floating dtypes."""
        passed, failed = ({v.dtypes for v in group.values()} for group in (self.passed, self.failed))
        return frozenset({d for names in passed for d in names.split(",")} - {d for t in failed for d in t.split(",")})

    @property
    def failures(self) -> dict[str, str]:
        """One line on the failures in each floating dtype, with keys as in `verified`."""
        verdicts: defaultdict[str, list[Verdict]] = defaultdict(list)
        for verdict in self.failed.values():
            for dtype in verdict.dtypes.split(","):
                verdicts[dtype].append(verdict)
        return {dtype: self._summary(failed) for dtype, failed in verdicts.items()}

    @property
    def failure(self) -> str:
        """One line on all failures, or '' if there is none."""
        return self._summary(list(self.failed.values())) if self.failed else ""

    def _summary(self, failed: Sequence[Verdict]) -> str:
        return f"{failed[0].outcome} in {len(failed)} of {self.judged} judged cases: {failed[0].detail}"

    @property
    def variants(self) -> frozenset[str]:
        """Specialisations that Triton compiles for the passed cases, on one target."""
        return frozenset(name for v in self.passed.values() for name in v.variants.split(",") if name)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds that the passed calls have, as in verify/cases/kinds.py."""
        return frozenset(v.kind for v in self.passed.values() if v.kind)


class Standings(dict[tuple[tuple[str, ...], str], Standing]):
    """Standing by kernels and overload, as in Identity; empty if nothing is known.

    Attributes:
        tried: Keys for the kernel files that passed a whole trial.
        platform: Platform name.
        platform_typed: Platform name or path as typed.
    """

    tried: frozenset[str] = frozenset()
    platform = platform_typed = ""

    def __missing__(self, key: tuple[tuple[str, ...], str]) -> Standing:
        return Standing()


def is_few(independent: int | None) -> bool:
    """Return True if a pass on this number of independent cases has to be marked; None means it is unknown."""
    return independent is not None and independent < ENOUGH


def evidence(outcome: Outcome | None, independent: int | None) -> str | None:
    """Return how well a pass is supported, "strong" or "few cases"; None without a pass."""
    if outcome is not Outcome.PASS:
        return None
    return FEW_CASES if is_few(independent) else STRONG


def marked(outcome: Outcome, independent: int | None) -> str:
    """Format the outcome; a pass with few independent cases states their number."""
    few = outcome is Outcome.PASS and is_few(independent)
    return f"{outcome}, {independent} case{'s' * (independent != 1)}" if few else str(outcome)
