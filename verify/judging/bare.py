"""What a bare file is judged on beside its first dtypes; that it is not for these may be told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from verify.cases.case import Case, spread
from verify.cases.opinfo import kept_cases
from verify.comparison.compare import SINGLE
from verify.outcome import Outcome, Verdict

MAX_USUAL = 4  # dimensions that no bare file may refuse
MAX_OTHER = 3  # of each dtype beside the first of a bare file, which may raise there
OTHERS = ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
_AS_SINGLE = "dtype is float32, expected float64"  # as the comparison tells of statistics kept in single precision
_RAISES = (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR)  # what a bare file may do with dtypes that it does not claim


def in_other_dtypes(
    overloads: Sequence[str], chosen: Mapping[str, list[Case]], cache: Path | None
) -> dict[tuple[str, str], list[Case]]:
    """Take from the chosen cases those that are `beyond`, and add OpInfo's in dtypes of which there is none yet.

    Args:
        overloads: Those that the file is judged on.
        cache: Directory of kept OpInfo samples, or None to add none.

    Returns:
        Cases by overload, and dtype or rank.
    """
    taken = beyond(chosen, chosen)
    if cache is None:
        return taken
    known = {dtype for cases in chosen.values() for case in cases for dtype in case.dtypes}
    found: dict[tuple[str, str], list[Case]] = {}
    for dtype in (d for d in OTHERS if d not in known):
        for case in kept_cases(cache, list(overloads), (dtype,), every=False):
            if case.overload in chosen and dtype in case.dtypes:
                found.setdefault((case.overload, dtype), []).append(case)
    for key, cases in found.items():
        taken.setdefault(key, []).extend(spread(cases, MAX_OTHER))
    return taken


def beyond(chosen: Mapping[str, list[Case]], made: Mapping[str, list[Case]]) -> dict[tuple[str, str], list[Case]]:
    """Take from the made cases those on which a bare file may raise, or compute in the dtype that it is given.

    They have more dimensions than any case that was not made, or ask for a dtype that no tensor of those has.
    """
    found: dict[tuple[str, str], list[Case]] = {}
    for overload, cases in made.items():
        given = [case for case in chosen[overload] if not case.made]
        most = max((len(s) for case in given for s in case.shapes), default=0)
        known = {dtype for case in given for dtype in case.dtypes}
        for case in [case for case in cases if case.made]:
            rank, others = max(map(len, case.shapes), default=0), [d for d in _named(case) if d not in known]
            if rank > max(most, MAX_USUAL) or others:
                found.setdefault((overload, others[0] if others else f"rank {rank}"), []).append(case)
                cases.remove(case)
    return found


def _named(case: Case) -> list[str]:
    """Dtypes that its arguments are."""
    return [value["dtype"] for value in case.load().tree.values() if isinstance(value, dict) and "dtype" in value]


def refused_dtypes(
    others: Mapping[tuple[str, str], list[Case]],
    chosen: Mapping[str, list[Case]],
    verdicts: Mapping[tuple[str, str], Verdict],
) -> dict[str, str]:
    """What a bare file does in dtypes in which it raises, or computes in another; cases of the rest join the chosen."""
    refused: dict[str, str] = {}
    for (overload, dtype), cases in others.items():
        failed = [v for c in cases if (v := verdicts.get((overload, c.id))) and _narrows(dtype, v)]
        if failed:
            what = f"it computes in {SINGLE}" if failed[0].rule == SINGLE else failed[0].outcome
            refused[dtype] = f"{what}, {failed[0].detail}"
        else:
            chosen[overload] += cases
    return refused


def _narrows(dtype: str, verdict: Verdict) -> bool:
    """Whether a failure in a dtype that a bare file does not name is none of the file, but tells what it is not for."""
    wrong = verdict.outcome is Outcome.WRONG and verdict.layer == "compare"
    single = verdict.rule == SINGLE or verdict.detail.endswith(_AS_SINGLE)
    return verdict.outcome in _RAISES or single or (wrong and dtype in OTHERS[3:])
