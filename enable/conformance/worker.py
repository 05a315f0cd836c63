"""One process of several that run a suite: takes items, answers each natively and through the registration, compares.

Run by enable/conformance/driver.py: `python -m enable.conformance.worker DIRECTORY INDEX`. The directory holds what all
workers share. A worker may crash at any call: `note` says at which, and the next process goes on after it.
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

LOST = 77  # exit status: the GPU context is broken
DETAIL = 400  # characters of a failure that are kept
FAILURES = 200  # of an item that are kept; all are counted


class Desk:
    """What the workers of a run share, in a directory: options, the next item to take, and what each is at."""

    def __init__(self, directory: Path, index: int) -> None:
        self.directory, self.index, self._parent = directory, index, os.getppid()
        run = json.loads((directory / "run.json").read_text())
        self.options = validated(SuiteOptions, run["options"])
        self.results, self.done = Path(run["results"]), set(run["done"])
        self.deadline = float(run["deadline"])

    @property
    def late(self) -> bool:
        """Whether time is up, or the run was killed."""
        return time.time() > self.deadline or os.getppid() != self._parent

    def order(self, items: list[str]) -> list[str]:
        """Return the items that are to be run, in an order that makes any first part of them an even sample."""
        index, count = self.options.shard
        ordered = sorted(items, key=lambda item: hashlib.sha256(item.encode()).digest())
        mine = [item for place, item in enumerate(ordered) if place % count == index and self.options.wants(item)]
        left = [item for item in mine if item not in self.done]
        (self.directory / "total").write_text(f"{len(left)} {len(mine)}")
        return left

    def claims(self, items: list[str]) -> Iterator[str]:
        """Yield items that no other worker takes, until there are none, or no time."""
        while not self.late:
            with open(self.directory / "next", "r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                place = int(file.read() or 0)
                file.seek(0)
                file.write(str(place + 1))
            if place >= len(items):
                return
            yield items[place]

    @cached_property
    def _note(self) -> int:
        return os.open(self.directory / f"now-{self.index}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def note(self, item: str, check: str = "", label: str = "", phase: str = "", message: str = "") -> None:
        """Write down what is being run, so that a death of this process is attributed to it."""
        now = {"item": item, "check": check, "label": label, "phase": phase, "message": message, "at": time.time()}
        text = json.dumps(now).encode()
        os.pwrite(self._note, text + b" " * max(0, 2048 - len(text)), 0)


class Comparer:
    """Answers the probes of an item natively and through the registration."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.options = desk, desk.options
        self.suite: Any = importlib.import_module(qualified(f"enable.conformance.{self.options.suite}"))
        torch.set_warn_always(True)  # else the native call alone warns
        self.registration = self.options.registered()

    def run(self, item: str, without: frozenset[str] = frozenset()) -> Line | None:
        """Return the item's line, None if time ran out."""
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
        made = self.suite.probes(item, self.options, False, ours)
        return (probe for probe in made if probe.check not in without)

    def _compare(self, item: str, probes: list[Any], native: list[Any], ours: list[Any], served: list[Any]) -> Line:
        line, wide = Line(item), dict[str, Any]()
        tolerance = self.suite.tolerance(item)

        def reference(name: str) -> Response:
            if not wide:
                wide.update({f"{p.check}: {p.label}": p for p in self.suite.probes(item, self.options, True, False)})
            return answer(wide[name], self.options.device) if name in wide else Response()

        for probe, a, b, kernels in zip(probes, native, ours, served, strict=True):
            name = f"{probe.check}: {probe.like or probe.label}"
            found = list(differences(probe, a, b, tolerance, partial(reference, name)))
            outcome = "failed" if found else "native" if a.error else "passed"
            line.count(probe.check, "samples", outcome, *(["served"] if kernels else []))
            for difference in found[:1]:
                if len(line.failures) < FAILURES:
                    told = probe.check, probe.label, difference.kind, difference.detail[:DETAIL], kernels[:8]
                    line.failures.append(_failure(*told))
        return line


def _failure(check: str, label: str, kind: str, detail: str, served: list[str]) -> dict[str, Any]:
    return {"check": check, "label": label, "kind": kind, "detail": detail, "served": served}


def main() -> None:
    """Take items until there are none."""
    desk = Desk(Path(sys.argv[1]), int(sys.argv[2]))
    again = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
    try:
        desk.note("", phase="starting")
        comparison = Comparer(desk)
        items = desk.order(comparison.suite.items(desk.options))
        if again:
            _run(desk, comparison, again["item"], frozenset(again["without"]))
        for item in desk.claims(items):
            _run(desk, comparison, item)
        desk.note("", phase="finished")
    except DeviceLost as error:
        desk.note(*_now(desk), message=str(error))
        sys.stdout.flush()
        os._exit(LOST)


def _run(desk: Desk, comparison: Comparer, item: str, without: frozenset[str] = frozenset()) -> None:
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
    now = json.loads(os.pread(desk._note, 4096, 0))
    return now["item"], now["check"], now["label"], now["phase"]


if __name__ == "__main__":
    main()
