"""Select the recorded cases that a decision on a kernel depends on, and hold some back from the model.

Held-back cases are the held-out set: only the acceptance trial runs them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from blake3 import blake3

from verify.cases.case import Case, by_overload, spread
from verify.cases.extended import extended
from verify.cases.opinfo import kept_cases
from verify.judging.standings import ENOUGH

HELD_BACK = 5  # one case in 5 is held back per overload; an overload with fewer cases keeps all


def split(cases: Sequence[Case], show: Collection[str] = ()) -> tuple[list[Case], list[Case]]:
    """Split cases into shown cases and held-back cases.

    For each overload with at least HELD_BACK cases, about one signature in HELD_BACK is held back, chosen by
    its hash. The choice hardly depends on the other cases, so a trace that is recorded later rarely hides a
    case that was shown.

    Args:
        cases: Cases of any overloads.
        show: Ids for cases that are never held back.

    Returns:
        Shown cases and held-back cases. At most half of an overload's cases are held back.
    """
    held_back: set[str] = set()
    for group in by_overload(cases).values():
        ranked = sorted(group, key=_rank) if len(group) >= HELD_BACK else []
        chosen = [case for case in ranked if _rank(case) % HELD_BACK == 0] or ranked[:1]
        held_back |= {case.id for case in chosen[: len(group) // 2]}
    held_back -= set(show)
    return [c for c in cases if c.id not in held_back], [c for c in cases if c.id in held_back]


def _rank(case: Case) -> int:
    """Return a 64-bit hash of the case without its tensor contents."""
    return int.from_bytes(blake3(f"held back {case.independence}".encode()).digest(8))


def independent(cases: Iterable[Case]) -> int:
    """Return the number of cases that differ in more than tensor contents."""
    return len({case.independence for case in cases})


def few(cases: Sequence[Case]) -> frozenset[str]:
    """Return the overloads that have fewer than ENOUGH independent cases."""
    return frozenset(o for o, group in by_overload(cases).items() if independent(group) < ENOUGH)


def count_evidence(cache: Path, overload: str, recorded: Sequence[Case], dtypes: Sequence[str]) -> int:
    """Count the independent cases for a kernel's trial; at most about ENOUGH cases are derived.

    Args:
        cache: Directory with cached OpInfo samples.
        overload: The overload.
        recorded: Recorded cases for the overload.
        dtypes: Sample dtypes.
    """
    cases = [*recorded, *spread(kept_cases(cache, [overload], tuple(dtypes)), ENOUGH)]
    if cases and independent(cases) < ENOUGH:
        cases += [variant.case for variant in extended(cases, 0, most=ENOUGH)]
    return independent(cases)
