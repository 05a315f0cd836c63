"""Print the table of a file of records, and the mutants that survived."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernel_mutants.changes import CLASSES
from benchmarks.kernel_mutants.judging import (
    EQUIVALENT,
    KILLED,
    STILLBORN,
    SURVIVED,
    UNDECIDED,
    UNREACHED,
    UNSOUND,
)

REASONS = Path(__file__).parent / "equivalents.toml"
BY_REASON = "by reason"  # survivors that a person found to be equivalent
COLUMNS = (STILLBORN, KILLED, EQUIVALENT, UNREACHED, BY_REASON, SURVIVED, UNDECIDED, UNSOUND)

Record = dict[str, Any]


def read_records(path: Path) -> list[Record]:
    """Return the records of a file in the order of their numbers; a line that was cut off is left out."""
    records: dict[int, Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[record["number"]] = record
    return [records[number] for number in sorted(records)]


def with_reasons(records: Iterable[Record], reasons: Path = REASONS) -> list[Record]:
    """Return the records without repeated mutants, those that a person found equivalent in their own state."""
    known = tomllib.loads(reasons.read_text(encoding="utf-8"))["equivalent"]
    keys = {(entry["module"], entry["function"], entry["change"]) for entry in known}
    unique = {(r["file"], r["origin"], r["change"]): r for r in reversed(list(records))}
    kept = []
    for record in reversed(unique.values()):
        key = record["origin"].rpartition(":")[0], record["function"], record["change"]
        equivalent = record["state"] == SURVIVED and key in keys
        kept.append({**record, "state": BY_REASON} if equivalent else record)
    return kept


def score(states: Counter[str]) -> str:
    """Return killed / (killed + survived) in percent, or '-' if no mutant counts."""
    counted = states[KILLED] + states[SURVIVED]
    return f"{100 * states[KILLED] / counted:.1f} %" if counted else "-"


def table(records: Sequence[Record], reasons: Path = REASONS) -> str:
    """Return the table by class, the outcomes of killed mutants, and the list of those that survived."""
    records = with_reasons(records, reasons)
    states = {kind: Counter(r["state"] for r in records if r["kind"] == kind) for kind in CLASSES}
    states = {kind: counted for kind, counted in states.items() if counted}
    states["all"] = sum(states.values(), Counter[str]())
    lines = ["| class | drawn | ran | " + " | ".join(COLUMNS) + " | score |", "|---" * (4 + len(COLUMNS)) + "|"]
    for kind, counted in states.items():
        drawn = counted.total()
        numbers = [drawn, drawn - counted[STILLBORN], *(counted[column] for column in COLUMNS)]
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} | {score(counted)} |")
    lines += ["", *_outcomes(records), *_left_out(records), *_listed(records)]
    return "\n".join(lines)


def _outcomes(records: Sequence[Record]) -> list[str]:
    killed = [r for r in records if r["state"] == KILLED]
    outcomes = Counter(r["outcome"] for r in killed)
    layers = Counter(f"{r['layer']}" for r in killed)
    return [f"killed: {_counts(outcomes)}", f"by layer: {_counts(layers)}"]


def _left_out(records: Sequence[Record]) -> list[str]:
    """Describe the undecided mutants, and the score if each of them had survived."""
    late = [r for r in records if r["state"] == UNDECIDED]
    files = {r["file"] for r in late}
    states = Counter(SURVIVED if r["state"] == UNDECIDED else r["state"] for r in records)
    message = f"undecided: {len(late)} mutants of {len(files)} files, whose trial takes too long"
    return [f"{message}; score if all had survived: {score(states)}"]


def _listed(records: Sequence[Record]) -> list[str]:
    lines = []
    for state in (SURVIVED, UNSOUND):
        chosen = [r for r in records if r["state"] == state]
        lines += ["", f"{state}: {len(chosen)}"] if chosen else []
        lines += [
            f"  {r['number']} {r['kind']} {r['file']} {r['origin']} {r['function']}: {r['change']}" for r in chosen
        ]
    return lines


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common()) or "none"
