"""Run random Triton programs in the simulator and on a GPU, and list every difference.

    python -m benchmarks.differential --programs 10000 --seed 1 --workers 16 --out differential.json
    python -m benchmarks.differential --programs 30 --without-gpu      # the simulator, and the compiler for sm_90
    python -m benchmarks.differential --show 17 --seed 1               # a program's text

A program is determined by the seed and its index. Results are compared bit for bit, or within the allowances in
allowances.py. The exit status is 1 if a difference is unexplained, and 2 if there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.differential.allowances import ALLOWANCES
from benchmarks.differential.comparison import ALLOWED, BITWISE, FUSED, UNEXPLAINED, UNUSED, Outcome, compare
from benchmarks.differential.programs import generate
from benchmarks.differential.sides import COMPILE, FAILED, GPU, OK, REFUSED, SIM, Answer
from benchmarks.differential.slicing import operation, sliced
from benchmarks.differential.workers import run_all

COLUMNS = (BITWISE, FUSED, ALLOWED, UNEXPLAINED, UNUSED)
RAN = "ran and compiled"
PROGRESS_SECONDS = 10.0


@dataclass
class Report:
    """Outcomes by program class."""

    seed: int
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    allowances: Counter[str] = field(default_factory=Counter)
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def add(self, index: int, kind: str, outcome: Outcome) -> None:
        self.counts.setdefault(kind, Counter())[outcome.verdict] += 1
        self.allowances.update(outcome.allowances)
        self.outcomes[index] = outcome

    @property
    def unexplained(self) -> list[int]:
        return sorted(index for index, outcome in self.outcomes.items() if outcome.verdict == UNEXPLAINED)

    def table(self, columns: tuple[str, ...]) -> str:
        """Return Markdown tables: outcomes by class, and allowances."""
        lines = [f"| class | programs | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
        total: Counter[str] = sum(self.counts.values(), Counter())
        for kind, counts in (*sorted(self.counts.items()), ("all", total)):
            lines.append(f"| {kind} | {counts.total()} | {' | '.join(str(counts[c]) for c in columns)} |")
        if self.allowances:
            lines += ["", "| allowance | programs | reason |", "|---|---|---|"]
            lines += [f"| {name} | {n} | {ALLOWANCES[name].reason} |" for name, n in self.allowances.most_common()]
        return "\n".join(lines)

    def difference(self, index: int) -> str:
        """Return a program's first difference, and the statements that lead to it."""
        outcome, program = self.outcomes[index], generate(self.seed, index)
        text = f"seed {self.seed}, program {index} ({program.kind}): {outcome.detail}"
        lines = sliced(program, outcome.result) if outcome.result else [line.text for line in program.lines]
        inputs = (f"{b.name}: {b.dtype}, {b.flavour}" for b in program.buffers if b.taints is None)
        return "\n    ".join((text, f"# {'; '.join(inputs)}; grid {program.grid}", *lines))

    def operations(self) -> str:
        """Return a Markdown table: operations at which unexplained programs first differ."""
        named = [(i, self.outcomes[i].result) for i in self.unexplained]
        counts = Counter(operation(generate(self.seed, i), r) if r else "(no result)" for i, r in named)
        rows = [f"| {name.replace('|', chr(92) + '|')} | {n} |" for name, n in counts.most_common()]
        return "\n".join(("| first different operation | programs |", "|---|---|", *rows))

    def json(self) -> dict[str, Any]:
        kept = {i: asdict(o) for i, o in sorted(self.outcomes.items()) if o.verdict in (UNEXPLAINED, UNUSED)}
        counts = {kind: dict(counts) for kind, counts in sorted(self.counts.items())}
        return {"seed": self.seed, "programs": len(self.outcomes), "counts": counts} | {
            "allowances": dict(self.allowances.most_common()),
            "listed": kept,
            "differences": {i: self.difference(i) for i in self.unexplained},
        }


def main() -> int:
    """Run the programs and print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0, help="index to begin with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="programs that run at once")
    parser.add_argument("--out", type=Path, help="JSON file for the outcomes")
    parser.add_argument("--without-gpu", action="store_true", help="compile for sm_90, and compare nothing")
    parser.add_argument("--differences", type=int, default=20, help="unexplained differences to print")
    parser.add_argument("--show", type=int, metavar="INDEX", help="print the text of a program")
    options = parser.parse_args()
    if options.show is not None:
        print(generate(options.seed, options.show).source())
        return 0
    if not options.without_gpu and not _has_gpu():
        print("error: PyTorch sees no CUDA device; try: --without-gpu", file=sys.stderr)
        return 2
    indices = range(options.start, options.start + options.programs)
    report = run(options.seed, indices, options.workers, options.without_gpu)
    print(report.table((RAN, UNEXPLAINED, UNUSED) if options.without_gpu else COLUMNS))
    if report.unexplained:
        print("\n" + report.operations())
    for index in report.unexplained[: options.differences]:
        print("\n" + report.difference(index))
    if options.out:
        options.out.write_text(json.dumps(report.json(), indent=1) + "\n")
    return 1 if report.unexplained else 0


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def run(seed: int, indices: range, workers: int, without_gpu: bool) -> Report:
    """Run programs on both sides, and report progress to stderr."""
    report, begun = Report(seed), time.monotonic()
    printed = begun

    def take(index: int, answers: list[Answer]) -> None:
        nonlocal printed
        program = generate(seed, index)
        outcome = checked(*answers) if without_gpu else compare(program, *answers)
        report.add(index, program.kind, outcome)
        now = time.monotonic()
        if now - printed > PROGRESS_SECONDS:
            printed = now
            done = len(report.outcomes)
            text = f"{done} of {len(indices)} programs, {len(report.unexplained)} unexplained"
            print(f"{text}, {done / (now - begun):.1f} programs/s", file=sys.stderr, flush=True)

    run_all((SIM, COMPILE if without_gpu else GPU), seed, indices, workers, take)
    return report


def checked(sim: Answer, compiled: Answer) -> Outcome:
    """Return the outcome for a program that no GPU ran."""
    if compiled.status == REFUSED:
        return Outcome(UNUSED, detail=compiled.message)
    if FAILED in (sim.status, compiled.status):
        return Outcome(UNEXPLAINED, detail=sim.message or compiled.message)
    assert sim.status == compiled.status == OK
    return Outcome(RAN)


if __name__ == "__main__":
    sys.exit(main())
