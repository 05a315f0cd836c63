"""The cases that a decision on a kernel rests on: which are held back, which are made where few were recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch
from blake3 import blake3

from traces.values import unpack
from verify.cases.case import Case, by_overload, case_of_values
from verify.cases.extended import extended
from verify.cases.opinfo import kept_cases
from verify.cases.oracle import stands
from verify.judging.verdicts import ENOUGH

HELD_BACK = 5  # one case in so many of an overload is held back; of fewer cases none is
MAX_OPINFO = 64  # OpInfo's cases of an overload that are asked, spread evenly over its samples
MAX_EXTENDED = 32  # cases made from these and from the recorded ones


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


def further(
    cache: Path,
    overload: str,
    given: Sequence[Case],
    dtypes: Sequence[str],
    source: str = "",
    most: tuple[int, int] = (MAX_OPINFO, MAX_EXTENDED),
) -> list[Case]:
    """Cases of OpInfo, and some that are made from these and from those `given`, without the given ones.

    cache: where OpInfo's samples are kept. dtypes: of these. source: of a kernel, for its block sizes. most: how many
    of the two.
    """
    samples = _samples(cache, overload, tuple(dtypes)) if most[0] else ()
    chosen = samples[:: max(1, -(-len(samples) // max(1, most[0])))]
    start = [*chosen, *given]
    start += _in_integers(start, dtypes) if most[1] else []
    made = _made(tuple(start), source, most[1]) if most[1] and start else ()
    known = {case.id for case in given}
    return [case for case in (*start, *made) if case.id not in known]


def _in_integers(cases: Sequence[Case], dtypes: Sequence[str]) -> list[Case]:
    """A case of each of these dtypes of integers of which there is none, where ATen takes them instead of floats."""
    known = {dtype for case in cases for dtype in case.dtypes}
    found = []
    for dtype in (getattr(torch, name) for name in dtypes if name not in known):
        if dtype.is_floating_point or dtype.is_complex or not cases:
            continue
        arguments = unpack(cases[0].load())
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                arguments[name] = value.nan_to_num(0, 0, 0).abs().clamp(max=100).to(dtype)
        if stands(cases[0].overload, arguments):
            told = f"as {dtype}".replace("torch.", "")
            found.append(replace(case_of_values(cases[0].overload, **arguments), signature=told))
    return found


@lru_cache(maxsize=8)  # a test of a kernel and its acceptance ask for the same several times, and ATen answers each one
def _made(cases: tuple[Case, ...], source: str, most: int) -> Sequence[Case]:
    return tuple(variant.case for variant in extended(list(cases), 0, source, most))


@lru_cache(maxsize=8)
def _samples(cache: Path, overload: str, dtypes: tuple[str, ...]) -> Sequence[Case]:
    return kept_cases(cache, [overload], dtypes)
