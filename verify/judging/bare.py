"""Judge a bare file in further dtypes; a failure there only restricts the dtypes that it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from verify.cases.case import Case, spread
from verify.cases.opinfo import kept_cases
from verify.comparison.compare import SINGLE
from verify.outcome import Outcome, Verdict

MAX_USUAL = 4  # dimensions that a bare file must support
MAX_OTHER = 3  # cases for each further dtype, in which a bare file may raise
OTHERS = ("float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
_AS_SINGLE = "dtype is float32, expected float64"  # message of the comparison for statistics kept in single precision
# outcomes that are allowed in dtypes that a bare file does not claim
_RAISES = (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR)


def in_other_dtypes(
    overloads: Sequence[str], chosen: Mapping[str, list[Case]], cache: Path | None
) -> dict[tuple[str, str], list[Case]]:
    """Move the cases that are `beyond` out of `chosen`, and add OpInfo samples in further dtypes.

    Args:
        overloads: Overloads that the file is judged on.
        chosen: Cases by overload; modified in place.
        cache: Directory with stored OpInfo samples, or None to add none.

    Returns:
        Cases by overload, and dtype or rank.
    """
    taken = beyond(chosen, chosen)
    if cache is None:
        return taken
    known = {dtype for cases in chosen.values() for case in cases for dtype in case.dtypes}
    samples: dict[tuple[str, str], list[Case]] = {}
    for dtype in (d for d in OTHERS if d not in known):
        for case in kept_cases(cache, list(overloads), (dtype,), every=False):
            if case.overload in chosen and dtype in case.dtypes:
                samples.setdefault((case.overload, dtype), []).append(case)
    for key, cases in samples.items():
        taken.setdefault(key, []).extend(spread(cases, MAX_OTHER))
    return taken


def beyond(chosen: Mapping[str, list[Case]], made: Mapping[str, list[Case]]) -> dict[tuple[str, str], list[Case]]:
    """Remove from `made` the cases on which a bare file may raise, or compute in the given dtype, and return them.

    These cases have more dimensions than all cases that were not generated, or they request a dtype that none of
    those has.
    """
    removed: dict[tuple[str, str], list[Case]] = {}
    for overload, cases in made.items():
        recorded = [case for case in chosen[overload] if not case.made]
        most = max((len(s) for case in recorded for s in case.shapes), default=0)
        known = {dtype for case in recorded for dtype in case.dtypes}
        for case in [case for case in cases if case.made]:
            rank, new_dtypes = max(map(len, case.shapes), default=0), [d for d in _named(case) if d not in known]
            if rank > max(most, MAX_USUAL) or new_dtypes:
                removed.setdefault((overload, new_dtypes[0] if new_dtypes else f"rank {rank}"), []).append(case)
                cases.remove(case)
    return removed


def _named(case: Case) -> list[str]:
    """Return the dtypes that appear as arguments."""
    return [value["dtype"] for value in case.load().tree.values() if isinstance(value, dict) and "dtype" in value]


def refused_dtypes(
    further_cases: Mapping[tuple[str, str], list[Case]],
    chosen: Mapping[str, list[Case]],
    verdicts: Mapping[tuple[str, str], Verdict],
) -> dict[str, str]:
    """Return the dtypes in which a bare file raises or computes in another dtype, with a description.

    The cases in the remaining dtypes are added to `chosen`.
    """
    refused: dict[str, str] = {}
    for (overload, dtype), cases in further_cases.items():
        failed = [v for c in cases if (v := verdicts.get((overload, c.id))) and _narrows(dtype, v)]
        if failed:
            action = f"it computes in {SINGLE}" if failed[0].rule == SINGLE else failed[0].outcome
            refused[dtype] = f"{action}, {failed[0].detail}"
        else:
            chosen[overload] += cases
    return refused


def _narrows(dtype: str, verdict: Verdict) -> bool:
    """Return True if a failure in a dtype that a bare file does not claim only shows that it is not for that dtype."""
    wrong = verdict.outcome is Outcome.WRONG and verdict.layer == "compare"
    single = verdict.rule == SINGLE or verdict.detail.endswith(_AS_SINGLE)
    return verdict.outcome in _RAISES or single or (wrong and dtype in OTHERS[3:])
