"""What judging costs: small cases a second in one bare process, in the sandbox, and with everything that judges.

    python -m benchmarks.judge [--cases 100]
    python -m benchmarks.judge --trace .enable/traces/opinfo.trace [--one-in 10] [--cache DIRECTORY]

With a trace every case of it that has a kernel, or those of one overload in so many, is judged as `enable coverage`
does, no verdict being kept from before: cases a second, and where the time of the judge's threads went. Compiled
kernels are kept in DIRECTORY for the next time, or not at all.

Otherwise the same wrapper (exp on 20 elements, another seed each) is put through each way in turn, three times; medians
are printed. Bare: the interpreter and a comparison in this process. Sandbox: a confined child that executes. Judge:
compile gate, ghost run, execution, comparison.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # for the bare process; children set their own

import torch

from enable.cover.coverage import cases_by_overload, judge_cases
from enable.cover.needs import match_overloads
from generate.kernel_library import KERNELS, Library
from traces.store import Trace
from traces.values import unpack
from verify import platforms
from verify.cases.case import Case, case_of_values, reference
from verify.child.loading import load_wrappers
from verify.contract.derive import Plan, call
from verify.contract.kernel_file import KernelFile
from verify.judging import case_run, job_run
from verify.judging.asking import Children
from verify.judging.judge import Job, Judge
from verify.judging.verdicts import VerdictStore
from verify.outcome import Outcome
from verify.platforms import EXECUTE
from verify.sandbox.children import Zygote

OVERLOAD = "aten::exp"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--trace", type=Path, help="of recorded calls")
    parser.add_argument("--one-in", type=int, default=1, help="of a trace's overloads")
    parser.add_argument("--cache", type=Path, help="of compiled kernels")
    options = parser.parse_args()
    if options.trace is not None:
        over_trace(options.trace, options.one_in, options.cache)
        return
    kernel = Library(KERNELS).kernel(OVERLOAD)
    assert kernel is not None
    rates: dict[str, list[float]] = {"bare": [], "sandbox": [], "judge": []}
    with tempfile.TemporaryDirectory() as directory:
        zygote = Zygote(EXECUTE, "full")
        try:
            for turn in range(3):
                cases = [case_of_values(OVERLOAD, self=torch.randn(20)) for _ in range(options.cases)]
                rates["bare"].append(rate(cases, lambda cases: bare(kernel, cases, Path(directory))))
                rates["sandbox"].append(rate(cases, lambda cases: confined(kernel, cases, zygote)))
                store = VerdictStore(Path(directory) / f"{turn}.sqlite")
                with Judge(platforms.load("sim"), store, workers=1) as judge:
                    warm = replace(cases[0], id="warm")
                    judge.judge([Job(Plan(OVERLOAD, OVERLOAD), kernel, (warm,))])
                    rates["judge"].append(rate(cases, lambda cases, judge=judge: judged(kernel, cases, judge)))
                store.close()
        finally:
            zygote.close()
    medians = {name: statistics.median(found) for name, found in rates.items()}
    for name, median in medians.items():
        print(f"{name:8} {median:8.1f} cases/s   {100 * median / medians['bare']:.0f} % of bare")


def over_trace(path: Path, one_in: int = 1, cache: Path | None = None) -> None:
    """Judge what a trace holds, and print how long which part of it took."""
    spent: defaultdict[str, float] = defaultdict(float)
    timed(spent, "reference", job_run, "reference")
    timed(spent, "comparison", case_run, "compare", "conjured")
    timed(spent, "children: start", Zygote, "fork")
    ask = Children.ask

    def asked(self: Children, mode: str, *rest: Any) -> Any:
        begun, before = time.perf_counter(), spent["children: start"]
        try:
            return ask(self, mode, *rest)
        finally:
            started = spent["children: start"] - before
            spent[f"children: {mode}"] += time.perf_counter() - begun - started

    setattr(Children, "ask", asked)  # noqa: B010 - a benchmark looks within
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        trace, library = Trace.open(path), Library(KERNELS)
        cases, matches = cases_by_overload(trace), match_overloads(trace, library)
        cases = {o: cases[o] for o in sorted(cases)[::one_in]}
        store = VerdictStore(home / "verdicts.sqlite")
        workers = os.cpu_count() or 1
        with Judge(platforms.load("sim"), store, workers, cache=cache or home / "triton") as judge:
            judge.warm()
            begun = time.perf_counter()
            verdicts = judge_cases(cases, matches, judge, lambda total: lambda job, verdict: None)
            seconds = time.perf_counter() - begun
        store.close()
    print(f"{len(verdicts)} cases in {seconds:.1f} s, {len(verdicts) / seconds:.1f} a second, {workers} workers")
    outcomes = Counter(str(v.outcome) for v in verdicts.values())
    print(", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common()))
    spent["else"] = workers * seconds - sum(spent.values())
    for part, taken in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {part:18} {taken:8.1f} s  {100 * taken / (workers * seconds):3.0f} % of the workers' time")


def timed(spent: defaultdict[str, float], part: str, owner: Any, *names: str) -> None:
    """Have calls of these functions of a module or class counted as that part."""

    def measured(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - begun

        return call

    for name in names:
        setattr(owner, name, measured(getattr(owner, name)))


def rate(cases: list[Case], work: Callable[[list[Case]], None]) -> float:
    """Cases a second."""
    start = time.perf_counter()
    work(cases)
    return len(cases) / (time.perf_counter() - start)


def bare(kernel: KernelFile, cases: list[Case], directory: Path) -> None:
    """Run and compare in this process, with nothing that guards."""
    wrappers = load_wrappers({"kernel": kernel.source}, directory)
    for case in cases:
        expected = unpack(reference(case).native)["return"]
        result = call(Plan(OVERLOAD, OVERLOAD), unpack(case.load()), wrappers["kernel"], kernel.takes_out, None)
        torch.testing.assert_close(result, expected)


def confined(kernel: KernelFile, cases: list[Case], zygote: Zygote) -> None:
    """Run in one confined child."""
    job = {
        "plan": asdict(Plan(OVERLOAD, OVERLOAD)),
        "sources": {"kernel": kernel.source},
        "takes_out": kernel.takes_out,
        "targets": [],
        "memory_bytes": 4 << 30,
        "alignment": 0,
    }
    with zygote.fork(job) as child:
        for case in cases:
            header, _ = child.ask(case.load(), 60.0)
            assert header["status"] == "ok", header


def judged(kernel: KernelFile, cases: list[Case], judge: Judge) -> None:
    """Everything."""
    verdicts = judge.judge([Job(Plan(OVERLOAD, OVERLOAD), kernel, tuple(cases))])
    assert all(v.outcome is Outcome.PASS for v in verdicts.values())


if __name__ == "__main__":
    main()
