"""What judging costs: small cases a second in one bare process, in the sandbox, and with everything that judges.

    python benchmarks/judge.py [--cases 100]

The same wrapper (exp on 20 elements, another seed each) is put through each way in turn, three times; medians are
printed. Bare: the interpreter and a comparison in this process. Sandbox: a confined child that executes. Judge: compile
gate, ghost run, execution, comparison.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # for the bare process; children set their own
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402 - needs the path above

from generate.library import KERNELS, Library  # noqa: E402
from traces.values import unpack  # noqa: E402
from verify import platforms  # noqa: E402
from verify.cases import Case, case_of_values, reference  # noqa: E402
from verify.child import load_wrappers  # noqa: E402
from verify.derive import Plan, call  # noqa: E402
from verify.judge import Job, Judge  # noqa: E402
from verify.kernel_file import KernelFile  # noqa: E402
from verify.outcome import Outcome  # noqa: E402
from verify.platforms import EXECUTE
from verify.sandbox import Zygote  # noqa: E402
from verify.verdicts import VerdictStore  # noqa: E402

OVERLOAD = "aten::exp"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    options = parser.parse_args()
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
