"""One of several processes that run a suite: take items, answer each natively and through the registration, compare.

enable/conformance/driver.py starts it: `python -m enable.conformance.worker DIRECTORY INDEX`. All workers share the
directory. A worker may crash at any call. `note` records the call, and the next process continues after it.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch

from enable.conformance.answers import DeviceLost, Response, answer, differences
from enable.conformance.options import SuiteOptions
from enable.conformance.results import Line, append
from generate.validation import validated
from traces.packaging import qualified

LOST = 77  # exit status if the GPU context is broken
DETAIL = 400  # characters kept per failure
FAILURES = 200  # failures kept per item; all are counted


class Desk:
    """The state that a run's workers share in a directory: options, the next item, and each worker's position."""

    def __init__(self, directory: Path, index: int) -> None:
        self.directory, self.index, self._parent = directory, index, os.getppid()
        run = json.loads((directory / "run.json").read_text())
        self.options = validated(SuiteOptions, run["options"])
        self.results, self.done = Path(run["results"]), set(run["done"])
        self.deadline = float(run["deadline"])

    @property
    def late(self) -> bool:
        """Return True if time is up or the run was killed."""
        return time.time() > self.deadline or os.getppid() != self._parent

    def order(self, items: list[str]) -> list[str]:
        """Return the items to run, in an order in which every prefix is an even sample."""
        index, count = self.options.shard
        ordered = sorted(items, key=lambda item: hashlib.sha256(item.encode()).digest())
        selected = [item for number, item in enumerate(ordered) if number % count == index and self.options.wants(item)]
        remaining = [item for item in selected if item not in self.done]
        (self.directory / "total").write_text(f"{len(remaining)} {len(selected)}")
        return remaining

    def claims(self, items: list[str]) -> Iterator[str]:
        """Yield items that no other worker takes, until none is left or time is up."""
        while not self.late:
            with open(self.directory / "next", "r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                position = int(file.read() or 0)
                file.seek(0)
                file.write(str(position + 1))
            if position >= len(items):
                return
            yield items[position]

    @cached_property
    def _note(self) -> int:
        """Return the file descriptor for notes."""
        return os.open(self.directory / f"now-{self.index}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def note(self, item: str, check: str = "", label: str = "", phase: str = "", message: str = "") -> None:
        """Record the current call, so that a crash can be attributed to it."""
        now = {"item": item, "check": check, "label": label, "phase": phase, "message": message, "at": time.time()}
        text = json.dumps(now).encode()
        os.pwrite(self._note, text + b" " * max(0, 2048 - len(text)), 0)


class Comparer:
    """Answers an item's probes natively and through the registration, and compares the responses."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.options = desk, desk.options
        self.suite: Any = importlib.import_module(qualified(f"enable.conformance.{self.options.suite}"))
        torch.set_warn_always(True)  # otherwise only the first call, the native one, would warn
        self.registration = self.options.registered()

    def run(self, item: str, without: frozenset[str] = frozenset()) -> Line | None:
        """Return the item's line, or None if time ran out."""
        device, began = self.options.device, time.time()
        with self.registration.suspended():
            native = []
            for probe in self._probes(item, False, without):
                self.desk.note(item, probe.check, probe.label, "native")
                native.append(answer(probe, device))
                if self.desk.late:
                    return None
            self.desk.note(item, "", "", "samples")
            probes = list(self._probes(item, True, without))
        ours, served = [], []
        for probe in probes:
            self.desk.note(item, probe.check, probe.label, "ours")
            before = Counter(self.registration.counts.served)
            ours.append(answer(probe, device, native=False))
            served.append(sorted(Counter(self.registration.counts.served) - before))
            if self.desk.late:
                return None
        self.desk.note(item, "", "", "comparison")
        with self.registration.suspended():
            line = self._compare(item, probes, native, ours, served)
        line.seconds = round(time.time() - began, 2)
        return line

    def _probes(self, item: str, ours: bool, without: frozenset[str]) -> Iterator[Any]:
        """Return the item's probes, except for the checks in `without`."""
        probes = self.suite.probes(item, self.options, False, ours)
        return (probe for probe in probes if probe.check not in without)

    def _compare(self, item: str, probes: list[Any], native: list[Any], ours: list[Any], served: list[Any]) -> Line:
        """Return the item's line with counts and the first difference for each probe."""
        line, wide = Line(item), dict[str, Any]()
        tolerance = self.suite.tolerance(item)

        def reference(name: str) -> Response:
            if not wide:
                wide.update({f"{p.check}: {p.label}": p for p in self.suite.probes(item, self.options, True, False)})
            return answer(wide[name], self.options.device) if name in wide else Response()

        for probe, a, b, kernels in zip(probes, native, ours, served, strict=True):
            name = f"{probe.check}: {probe.like or probe.label}"
            found_differences = list(differences(probe, a, b, tolerance, partial(reference, name)))
            outcome = "failed" if found_differences else "native" if a.error else "passed"
            line.count(probe.check, "samples", outcome, *(["served"] if kernels else []))
            for difference in found_differences[:1]:
                if len(line.failures) < FAILURES:
                    fields = probe.check, probe.label, difference.kind, difference.detail[:DETAIL], kernels[:8]
                    line.failures.append(_failure(*fields))
        return line


def _failure(check: str, label: str, kind: str, detail: str, served: list[str]) -> dict[str, Any]:
    """Return a failure as it is stored."""
    return {"check": check, "label": label, "kind": kind, "detail": detail, "served": served}


def main() -> None:
    """Take items until none is left."""
    desk = Desk(Path(sys.argv[1]), int(sys.argv[2]))
    restarted = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
    try:
        desk.note("", phase="starting")
        comparison = Comparer(desk)
        items = desk.order(comparison.suite.items(desk.options))
        if restarted:
            _run(desk, comparison, restarted["item"], frozenset(restarted["without"]))
        for item in desk.claims(items):
            _run(desk, comparison, item)
        desk.note("", phase="finished")
    except DeviceLost as error:
        desk.note(*_now(desk), message=str(error))
        sys.stdout.flush()
        os._exit(LOST)


def _run(desk: Desk, comparison: Comparer, item: str, without: frozenset[str] = frozenset()) -> None:
    """Run one item and append its line; an error in the suite itself counts as a failure."""
    desk.note(item, phase="samples")
    try:
        line = comparison.run(item, without)
    except DeviceLost:
        raise
    except Exception as error:  # noqa: BLE001 - the suite itself fails on one item of many
        check, label, phase = _now(desk)[1:]
        detail = f"{type(error).__name__}: {error}"
        line = Line(item, failures=[_failure(check or phase, label, "suite", detail[:DETAIL], [])])
        line.count(check or phase, "samples", "failed")
    if line is not None:
        append(desk.results, line)


def _now(desk: Desk) -> tuple[str, str, str, str]:
    """Return the item, check, label and phase of the current note."""
    now = json.loads(os.pread(desk._note, 4096, 0))
    return now["item"], now["check"], now["label"], now["phase"]


if __name__ == "__main__":
    main()
