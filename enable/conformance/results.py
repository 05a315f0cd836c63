"""Store a suite's results as JSON lines: workers write one line per item, and resumption and tables read them.

The first line states the format and the run. Each line is written by one `write` call, so workers can share a file. If
a run was killed, a torn last line is dropped.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from enable.conformance.options import SuiteOptions
from traces import UserError, jsonable

FORMAT, VERSION = "enablekit conformance", 1
EXCEPTIONS = Path(__file__).with_name("exceptions.yaml")
COUNTS = ("samples", "passed", "native", "failed", "served")


@dataclass
class Line:
    """The results for one item of a suite.

    Attributes:
        item: Name of the item.
        checks: Counts by check.
        failures: Check, label, kind, detail and served overloads of each failure.
        done: True if the item is complete. An item on which a worker died has further lines.
        seconds: Duration.
    """

    item: str
    checks: dict[str, dict[str, int]] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    done: bool = True
    seconds: float = 0.0

    def count(self, check: str, *names: str) -> None:
        """Add one to the named counts of a check."""
        counts = self.checks.setdefault(check, dict.fromkeys(COUNTS, 0))
        for name in names:
            counts[name] += 1


def begin(path: Path, options: SuiteOptions, resume: bool) -> set[str]:
    """Create the results file, or continue the existing one; return its complete items.

    Raises:
        UserError: The file to resume has another version, or its run had other options.
    """
    import torch

    head = {"format": FORMAT, "version": VERSION, "torch": torch.__version__, "options": jsonable(options)}
    if resume and path.is_file():
        old, lines = read(path)
        compared = ("suite", "device", "dtype_names", "checks", "samples", "shard", "library")
        differing = [name for name in compared if old["options"].get(name) != head["options"][name]]
        if old["torch"] != head["torch"] or differing:
            difference = ", ".join(differing) or f"torch {old['torch']}"
            raise UserError(
                f"{path}: the run to resume differs in {difference}; repeat its options, or leave out --resume"
            )
        _mend(path)
        return {line.item for line in lines if line.done}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(head) + "\n")
    os.replace(temporary, path)
    return set()


def _mend(path: Path) -> None:
    """Drop a torn last line."""
    data = path.read_bytes()
    complete = data[: data.rfind(b"\n") + 1]
    if complete != data:
        temporary = path.with_suffix(".new")
        temporary.write_bytes(complete)
        os.replace(temporary, path)


def append(path: Path, line: Line) -> None:
    """Append a line; other processes may append at the same time."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, (json.dumps(asdict(line)) + "\n").encode())
    finally:
        os.close(file)


def read(path: Path) -> tuple[dict[str, Any], list[Line]]:
    """Return the header and the lines. Raise UserError for another format or version."""
    first, *rest = path.read_bytes().decode(errors="replace").split("\n")
    try:
        head: dict[str, Any] = json.loads(first)
        is_results_file = head["format"] == FORMAT
    except (ValueError, KeyError, TypeError):
        is_results_file = False
    if not is_results_file:
        raise UserError(f"{path}: not a file of conformance results; remove it, or name another --workspace")
    if head["version"] != VERSION:
        raise UserError(f"{path}: version {head['version']}, this is version {VERSION}; run the suite again")
    lines = []
    for number, text in enumerate(rest[:-1], 2):  # text after the last newline is torn
        try:
            lines.append(Line(**json.loads(text)))
        except (ValueError, TypeError) as error:
            raise UserError(
                f"{path}: line {number} is damaged ({error}); remove the file, and run the suite"
            ) from error
    return head, lines


@dataclass(frozen=True)
class Exemption:
    """A known difference that does not count as a failure. The fields are patterns, and `reason` explains it."""

    suite: str
    reason: str
    item: str = "*"
    check: str = "*"
    label: str = "*"
    kind: str = "*"
    device: str = "*"
    detail: str = "*"

    def covers(self, suite: str, device: str, item: str, failure: dict[str, Any]) -> bool:
        """Return True if all patterns match the failure."""
        values = (suite, device, item, *(failure[name] for name in ("check", "label", "kind", "detail")))
        patterns = (self.suite, self.device, self.item, self.check, self.label, self.kind, self.detail)
        return all(map(fnmatchcase, values, patterns))


def exemptions(path: Path = EXCEPTIONS) -> list[Exemption]:
    """Return the known differences."""
    return [Exemption(**row) for row in yaml.safe_load(path.read_text()) or ()]


@dataclass
class SuiteReport:
    """The results of one suite on one device."""

    JSON = ("suite", "device", "rows", "failures", "known", "items", "sound")
    suite: str
    device: str
    rows: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    known: list[dict[str, Any]]
    items: int

    @property
    def sound(self) -> bool:
        """Return True if nothing fails."""
        return not any(row["failing"] for row in self.rows)


def report(paths: Iterable[Path], known: Iterable[Exemption]) -> SuiteReport:
    """Merge results files for one suite and device, such as shards."""
    known, merged, items = list(known), dict[str, Counter[str]](), set[str]()
    failures: list[dict[str, Any]] = []
    excused: list[dict[str, Any]] = []
    suite = device = ""
    for path in paths:
        head, lines = read(path)
        suite, device = head["options"]["suite"], head["options"]["device"]
        for line in lines:
            items.add(line.item)
            for check, counts in line.checks.items():
                merged.setdefault(check, Counter()).update(counts)
            for failure in line.failures:
                row = {"item": line.item, **failure}
                reason = next((e.reason for e in known if e.covers(suite, device, line.item, failure)), None)
                if reason is None:
                    failures.append(row)
                else:
                    excused.append({**row, "reason": reason})
    rows = [_row(check, counts, excused) for check, counts in merged.items()]
    return SuiteReport(suite, device, rows, failures, excused, len(items))


def _row(check: str, counts: Counter[str], excused: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a check's table row."""
    exempted = sum(failure["check"] == check for failure in excused)
    row: dict[str, Any] = {"check": check, "samples": counts["samples"], "passed": counts["passed"]}
    row |= {"as native": counts["native"], "failing": counts["failed"] - exempted, "known": exempted}
    return row | {"served": counts["served"]}


def failure_lines(report: SuiteReport, again: list[str]) -> Iterator[str]:
    """Yield a line for each failure, with the command that reproduces it."""
    import shlex

    for failure in report.failures:
        served = ", ".join(failure.get("served", ())[:4])
        words = [*again, "--ops", _literal(failure["item"]), "--checks", failure["check"]]
        yield (
            f"{failure['item']} [{failure['check']}] {failure['label']}: {failure['kind']}: {failure['detail']}"
            f"{f' (served: {served})' if served else ''}; again: {shlex.join(words)}"
        )


def _literal(item: str) -> str:
    """Return a pattern that matches only this item."""
    return "".join(f"[{c}]" if c in "[*?" else "?" if c == "," else c for c in item)
