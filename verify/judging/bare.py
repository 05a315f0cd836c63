"""Judge a bare file in further dtypes; a failure there only restricts the dtypes that it is for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from traces.lazy_bits import lazy_bits
from traces.values import unpack
from verify.cases.arguments import tensors
from verify.cases.case import Case, spread
from verify.cases.extended import extended, mixed
from verify.cases.opinfo import kept_cases
from verify.comparison.compare import SINGLE
from verify.outcome import Outcome, Verdict

MAX_USUAL = 4  # dimensions that a bare file must support
MAX_OTHER = 3  # OpInfo's samples for each further dtype, in which a bare file may raise
# Variants of these, by dtype: two or one of each kind of change (verify/cases/extended.py).
_MADE = {"float16": 12, "bfloat16": 12, "int64": 12, "float64": 6, "complex64": 6}
_MADE_ELSE = 3
OTHERS = ("float64", "float16", "bfloat16", "complex64", "int64", "int32", "int16", "int8", "uint8", "bool")
INTEGERS = OTHERS[4:]
MIXED = "two dtypes in one call"
LAZY = "tensors with the conjugate or negative bit"
_AS_SINGLE = "dtype is float32, expected float64"  # message of the comparison for statistics kept in single precision
# outcomes that are allowed in dtypes that a bare file does not claim
_RAISES = (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR)


def in_usual_dtypes(samples: Sequence[Case]) -> list[Case]:
    """Return the samples without those in which a composed operator converted to a dtype that a file may refuse."""
    return [case for case in samples if not {*case.dtypes} & {*OTHERS[:4]}]


def in_other_dtypes(
    overloads: Sequence[str], chosen: Mapping[str, list[Case]], cache: Path | None, seed: int, source: str
) -> dict[tuple[str, str], list[Case]]:
    """Move the cases that are `beyond` out of `chosen`, and add OpInfo samples and their variants in further dtypes.

    Args:
        overloads: Overloads that the file is judged on.
        chosen: Cases by overload; modified in place.
        cache: Directory with stored OpInfo samples, or None to add none.
        seed: Seed for the variants.
        source: The kernel's source, which is searched for block sizes.

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
            if case.overload in chosen and _is_in(dtype, case, known):
                samples.setdefault((case.overload, dtype), []).append(case)
    for key, cases in samples.items():
        variants = extended(cases, seed, source, _MADE.get(key[1], _MADE_ELSE))
        made = [v.case for v in variants if _is_in(key[1], v.case, known) and not _lazy(v.case)]
        taken.setdefault(key, []).extend([*spread(cases, MAX_OTHER), *made])
    for overload, cases in chosen.items():
        recorded = [case for case in cases if not case.made]
        if recorded and (of_two := [v.case for v in mixed(recorded)]):
            taken.setdefault((overload, MIXED), []).extend(of_two)
    return taken


def _is_in(dtype: str, case: Case, known: Collection[str]) -> bool:
    """Return True if a tensor has the dtype, and the call names no further dtype that is not known."""
    return dtype in case.dtypes and {*_named(case)} <= {dtype, *known}


def in_floats(cases: Sequence[Case]) -> list[Case]:
    """Return the cases without those in integers, unless all are: a bare file may have been written for floats."""
    floats = [case for case in cases if not {*case.dtypes} & {*INTEGERS}]
    return floats or list(cases)


def beyond(chosen: Mapping[str, list[Case]], made: Mapping[str, list[Case]]) -> dict[tuple[str, str], list[Case]]:
    """Remove from `made` the cases on which a bare file may raise, or compute in the given dtype, and return them.

    These cases request a dtype that no recorded tensor has. Generated ones may also have more
    dimensions than all recorded ones, or a tensor with the conjugate or negative bit.
    """
    removed: dict[tuple[str, str], list[Case]] = {}
    for overload, cases in made.items():
        recorded = [case for case in chosen[overload] if not case.made]
        most = max((len(s) for case in recorded for s in case.shapes), default=0)
        known = {dtype for case in recorded for dtype in case.dtypes}
        for case in list(cases):
            rank, new_dtypes = max(map(len, case.shapes), default=0), [d for d in _named(case) if d not in known]
            lazy = case.made and _lazy(case)
            if (case.made and rank > max(most, MAX_USUAL)) or new_dtypes or lazy:
                name = new_dtypes[0] if new_dtypes else LAZY if lazy else f"rank {rank}"
                removed.setdefault((overload, name), []).append(case)
                cases.remove(case)
    return removed


def _lazy(case: Case) -> bool:
    return any(lazy_bits(t) for t in tensors(unpack(case.load())))


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
    return verdict.outcome in _RAISES or single or (wrong and dtype in (*INTEGERS, LAZY))
