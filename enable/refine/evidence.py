"""The recorded cases that a decision on a kernel rests on: which of them are held back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from blake3 import blake3

from verify.cases.case import Case, by_overload, spread
from verify.cases.extended import extended
from verify.cases.opinfo import kept_cases
from verify.judging.standings import ENOUGH

HELD_BACK = 5  # one case in so many of an overload is held back; of fewer cases none is


def split(cases: Sequence[Case], show: Collection[str] = ()) -> tuple[list[Case], list[Case]]:
    """(shown, held back): of each overload with at least HELD_BACK cases about one signature in HELD_BACK, by its hash.

    Which half a case falls into hardly depends on the others, so that a trace recorded later hides nothing that was
    shown. show: ids that are not held back whatever their hash says.
    """
    held: set[str] = set()
    for group in by_overload(cases).values():
        ranked = sorted(group, key=_rank) if len(group) >= HELD_BACK else []
        chosen = [case for case in ranked if _rank(case) % HELD_BACK == 0] or ranked[:1]
        held |= {case.id for case in chosen[: len(group) // 2]}
    held -= set(show)
    return [c for c in cases if c.id not in held], [c for c in cases if c.id in held]


def _rank(case: Case) -> int:
    return int.from_bytes(blake3(f"held back {case.independence}".encode()).digest(8))


def independent(cases: Iterable[Case]) -> int:
    """How many of the cases differ in more than the contents of tensors."""
    return len({case.independence for case in cases})


def few(cases: Sequence[Case]) -> frozenset[str]:
    """The overloads of these cases of which fewer than ENOUGH are independent."""
    return frozenset(o for o, group in by_overload(cases).items() if independent(group) < ENOUGH)


def count_evidence(cache: Path, overload: str, recorded: Sequence[Case], dtypes: Sequence[str]) -> int:
    """Return the number of independent cases that a kernel could be judged on; no more are made than ENOUGH.

    Args:
        cache: Directory of kept OpInfo samples.
        recorded: The recorded cases of the overload.
        dtypes: The dtypes of the samples.
    """
    cases = [*recorded, *spread(kept_cases(cache, [overload], tuple(dtypes)), ENOUGH)]
    if cases and independent(cases) < ENOUGH:
        cases += [variant.case for variant in extended(cases, 0, most=ENOUGH)]
    return independent(cases)
