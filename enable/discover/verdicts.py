"""Verdicts on catalogue entries: classify the answers of workers, and compare results with the interpreter's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from enable.discover.entries import CatalogueEntry
from enable.discover.worker import COMPILED, REFUSED

WORKS, NOT_COMPILED, CRASHED, WRONG, SLOW = "works", "not compiled", "crashed", "wrong", "slow"
FAILURES = (NOT_COMPILED, CRASHED, WRONG, SLOW)
SLOW_FACTOR, SLOW_MILLISECONDS = 100, 1.0  # an entry is slow beyond both: times the median launch, and alone

# relative to the largest value: hardware approximates functions, and rounds intermediate results of narrow dtypes
TOLERANCES = {"float64": 1e-9, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
LOOSE = {"products": 4e-3, "libdevice": 1e-4}  # by group: tf32 products, and functions that trade accuracy for speed
TOLERANCE_8 = 0.13  # a float8 rounding with two mantissa bits


@dataclass(frozen=True)
class EntryVerdict:
    """The verdict on one entry.

    Attributes:
        entry: The entry.
        verdict: One of WORKS, NOT_COMPILED, CRASHED, WRONG and SLOW.
        message: First line of the error, or the difference.
        log: Longer text for the report.
        milliseconds: Time of a launch, or None.
        explained_by: Name of a failing entry that this one needs.
        smallest: Changes of META that give the smallest form that fails in the same way.
        largest_working: The largest working value of N below that form, if there is any.
    """

    entry: CatalogueEntry
    verdict: str
    message: str = ""
    log: str = ""
    milliseconds: float | None = None
    explained_by: str = ""
    smallest: Mapping[str, int] = field(default_factory=dict)
    largest_working: int | None = None

    @property
    def failed(self) -> bool:
        """Return True unless the entry works."""
        return self.verdict != WORKS

    @property
    def evidence(self) -> str:
        """Return the entry's name and the reason, for a comment."""
        size = f" from N = {self.smallest['N']}" if self.largest_working else ""
        return f"{self.entry.name}{size}: {self.verdict}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """Return the verdict for stored results."""
        stated: dict[str, Any] = {"verdict": self.verdict, "message": self.message, "explained_by": self.explained_by}
        stated |= {"smallest": dict(self.smallest), "largest_working": self.largest_working}
        return {name: value for name, value in stated.items() if value}


def verdict(entry: CatalogueEntry, answer: Mapping[str, Any], reference: Mapping[str, Any] | None) -> EntryVerdict:
    """Return the verdict on an entry.

    Args:
        entry: The entry.
        answer: The worker's answer.
        reference: The interpreter's answer, or None if the entry was only compiled.
    """
    status, message, log = answer["status"], answer.get("message", ""), answer.get("log", "")
    if status != COMPILED:
        return EntryVerdict(entry, NOT_COMPILED if status == REFUSED else CRASHED, message, log)
    milliseconds = answer.get("milliseconds")
    if reference is None:
        return EntryVerdict(entry, WORKS)
    if reference["status"] != COMPILED:
        note = f"not compared: the interpreter cannot run it ({reference['message']})"
        return EntryVerdict(entry, WORKS, note, milliseconds=milliseconds)
    difference = _difference(entry, answer["values"], reference["values"])
    return EntryVerdict(entry, WRONG if difference else WORKS, difference, milliseconds=milliseconds)


def _difference(entry: CatalogueEntry, path: str, reference_path: str) -> str:
    """Return how an entry's tensors differ from the interpreter's, or ""."""
    import torch

    for values, expected in zip(torch.load(path), torch.load(reference_path), strict=True):
        name = str(expected.dtype).removeprefix("torch.")
        bound = TOLERANCE_8 if name.startswith("float8") else TOLERANCES.get(name, 0.0)
        bound = max(bound, LOOSE.get(entry.group, 0.0)) if bound else 0.0
        wide = torch.float64 if expected.is_floating_point() else torch.int64
        a, b = values.to(wide), expected.to(wide)
        finite = b[b.isfinite()]
        allowed = bound * float(finite.abs().max()) if finite.numel() and bound else 0
        same = (a == b) | ((a - b).abs() <= allowed) | ((a != a) & (b != b))
        if not bool(same.all()):
            at = int((~same).flatten().nonzero()[0])
            count, total = int((~same).sum()), same.numel()
            pair = f"{a.flatten()[at].item()} instead of {b.flatten()[at].item()}"
            return f"{count} of {total} elements differ from the interpreter's, the first at {at}: {pair}"
    return ""


def explained(verdicts: Mapping[str, EntryVerdict]) -> dict[str, EntryVerdict]:
    """Return the verdicts with the failing entries that explain others, and with slow launches marked."""
    times = [v.milliseconds for v in verdicts.values() if v.milliseconds is not None]
    usual = median(times) if times else 0.0
    marked = {name: _slow(v, usual) for name, v in verdicts.items()}
    return {name: replace(v, explained_by=_explanation(v, marked)) if v.failed else v for name, v in marked.items()}


def _slow(each: EntryVerdict, usual: float) -> EntryVerdict:
    milliseconds = each.milliseconds or 0.0
    if each.verdict != WORKS or milliseconds < max(SLOW_MILLISECONDS, SLOW_FACTOR * usual):
        return each
    return replace(each, verdict=SLOW, message=f"{milliseconds:.3g} ms for a launch; the median is {usual:.3g} ms")


def _explanation(each: EntryVerdict, verdicts: Mapping[str, EntryVerdict]) -> str:
    """Return the name of the simplest failing entry that an entry needs."""
    for name in each.entry.needs:
        needed = verdicts.get(name)
        if needed is not None and needed.failed:
            return _explanation(needed, verdicts) or name
    return ""


def counts(verdicts: Iterable[EntryVerdict]) -> list[dict[str, Any]]:
    """Return a row with the number of entries by verdict for each group."""
    tally: dict[str, Counter[str]] = {}
    for each in verdicts:
        tally.setdefault(each.entry.group, Counter())[each.verdict] += 1
    return [
        {"group": group, "entries": sum(by.values()), **{name: by[name] for name in (WORKS, *FAILURES)}}
        for group, by in tally.items()
    ]
