"""Every kernel file of the library is judged on its data: the file of the same group and name beside this one.

CI judges those that mean something else, with their blocks, than what docs/results/library.json has verdicts of: a
change of a block's program changes that of every kernel on it. Of the others it judges the shortest file of
each group, on a case or two of each overload. `-m ""` judges all; with ENABLE_WORKSPACE set the verdicts are kept
there, and `enable library record` puts them down.
"""

from __future__ import annotations

import inspect
import os
import runpy
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from corpus import replaced
from shared import compiled, judging, packaged

from enable.cover.operators import read_results, sources
from enable.options import WORKSPACE_VARIABLE
from enable.serve.arguments import refusal
from enable.serve.modules import load_wrapper
from generate import BLOCKS
from generate.kernel_library import KERNELS
from traces.overloads import resolve
from verify import platforms
from verify.contract.derive import plans
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job
from verify.lint import lint, load_profile
from verify.outcome import Outcome

HERE = Path(__file__).parent
FILES = sorted(str(path.relative_to(KERNELS)) for path in KERNELS.glob("*/*.py"))
DATA = sorted(str(path.relative_to(HERE)) for path in HERE.glob("*/*.py"))
SAID = {name: runpy.run_path(str(HERE / name)).keys() for name in DATA}
RESULTS = HERE.parents[1] / "docs" / "results" / "library.json"
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")


def sample(recorded):
    """The files that CI judges: those that changed, and of the others one of each group."""
    met, changed, chosen = set(), set(), set()
    kernels = {name: KernelFile.read(KERNELS / name, (BLOCKS,)) for name in FILES}
    for name, kernel in sorted(kernels.items(), key=lambda item: len(item[1].source)):
        matches = [packaged().match(overload) for overload in kernel.overloads]
        known = [recorded.get(match.plan.overload, {}).get("sim", {}).get("sources") for match in matches]
        group = Path(name).parent
        if known != [sources(match) for match in matches]:
            changed.add(name)
        elif group not in met:
            chosen.add(name)
        met.add(group)
    return changed, chosen


CHANGED, SAMPLE = sample(read_results(RESULTS))


def named(files, in_ci=CHANGED | SAMPLE):
    """ids are names of operators, so that `-k gelu` works."""
    swept = {name: () if name in in_ci else pytest.mark.sweep for name in files}
    return pytest.mark.parametrize(
        "name", [pytest.param(f, id=f.removesuffix(".py"), marks=marks) for f, marks in swept.items()]
    )


@pytest.fixture(scope="session")
def judge(tmp_path_factory):
    named = os.environ.get(WORKSPACE_VARIABLE)
    path = Path(named or tmp_path_factory.mktemp("kernels")) / "verdicts.sqlite"
    with judging(path, cache=compiled()) as judge:
        yield judge


@pytest.fixture(scope="session")
def verdicts_of(judge):
    """A function: the verdicts of a kernel file on cases, by overload and case. first: until one fails."""
    library = packaged()

    def of(kernel, cases, first=False):
        jobs = []
        for overload in dict.fromkeys(case.overload for case in cases):
            plan = next(p for p in plans(overload) if p.base in kernel.overloads)
            match = library.match(plan.base)
            linked = replace(kernel, callees=match.kernel.callees)
            of_it = tuple(case for case in cases if case.overload == overload)
            copy = library.match("aten::copy_").kernel if plan.overload != plan.base else match.copy
            jobs.append(Job(plan, linked, of_it, copy, repeats=1, first=first))
        return judge.judge(jobs)

    return of


def test_every_kernel_file_has_its_data_and_the_other_way_round():
    assert FILES == DATA and len(FILES) > 90


def test_the_sample_has_each_group_and_what_changed():
    assert {Path(name).parent for name in CHANGED | SAMPLE} == {Path(name).parent for name in FILES}
    recorded = read_results(RESULTS)
    changed = {o: {p: row | {"sources": "other"} for p, row in rows.items()} for o, rows in recorded.items()}
    assert sample({}) == sample(changed) == (set(FILES), set())
    del recorded["aten::special_erfcx"]
    assert sample(recorded)[0] - CHANGED == {"special/special_erfcx.py"}


def assert_right(kernel, cases, verdicts_of):
    """It passes on the cases, and each of its overloads has one."""
    verdicts = verdicts_of(kernel, cases)
    failed = {key: (v.outcome, v.detail) for key, v in verdicts.items() if v.outcome is not Outcome.PASS}
    assert not failed, failed
    judged = Counter(plan.base for case in cases for plan in plans(case.overload)[:1])
    judged += Counter(case.overload for case in cases)
    assert not [o for o in kernel.overloads if not judged[o]], "each overload has a case"


@named(FILES, CHANGED)
def test_a_kernel_is_right(name, data_of, verdicts_of):
    kernel = KernelFile.read(KERNELS / name, (BLOCKS,))
    assert lint(kernel.source, load_profile(platforms.load("sim").lint), written=kernel.written) == []
    assert_right(kernel, data_of(HERE / name, kernel).cases, verdicts_of)


@named(sorted(SAMPLE))
def test_a_kernel_is_right_as_far_as_its_first_and_last_cases_tell(name, data_of, verdicts_of):
    kernel = KernelFile.read(KERNELS / name, (BLOCKS,))
    of = {}
    for case in data_of(HERE / name, kernel).cases:
        of.setdefault(case.overload, []).append(case)
    assert_right(kernel, [case for cases in of.values() for case in dict.fromkeys((cases[0], cases[-1]))], verdicts_of)


def refusals(kernel, data, verdicts_of):
    """Why each fault is refused; of one that is not, the outcomes. Raises ValueError for a text that is not there."""
    found = {}
    for fault, change in data.faults.items():
        bad = KernelFile.parse(replaced(kernel.source, change), kernel.path)
        outcomes = {v.outcome for v in verdicts_of(bad, data.cases, first=True).values()}
        found[fault] = Outcome.WRONG in outcomes or sorted(outcomes)
    return found


@named([name for name in DATA if "FAULTS" in SAID[name]])
def test_faults_are_refused(name, data_of, verdicts_of):
    kernel = KernelFile.read(KERNELS / name, (BLOCKS,))
    found = refusals(kernel, data_of(HERE / name, kernel), verdicts_of)
    assert found == dict.fromkeys(found, True)


@named([name for name in DATA if "REFUSED" in SAID[name]])
def test_sizes_that_do_not_fit_are_refused(name, data_of):
    kernel = KernelFile.read(KERNELS / name, (BLOCKS,))
    wrapper = load_wrapper(KERNELS / name, kernel.source)
    drawn = {"philox": (1, 2)} if "philox" in inspect.signature(wrapper).parameters else {}
    for overload, arguments in data_of(HERE / name, kernel).refused:
        schema = resolve(overload)._schema.arguments
        positional = [arguments[a.name] for a in schema if not a.kwarg_only]
        named = {a.name: arguments[a.name] for a in schema if a.kwarg_only}
        before = refusal(resolve(overload), tuple(positional), named)
        assert before is None, "ATen's function for device meta would refuse it before"
        with pytest.raises(
            (RuntimeError, IndexError)
        ):  # NotImplementedError, where ATen may take it, is a RuntimeError
            wrapper(*positional, **named, **drawn)


def test_a_fault_that_is_none_is_found(data_of, verdicts_of):
    kernel = KernelFile.read(KERNELS / "matmul" / "mm.py", (BLOCKS,))
    data = data_of(HERE / "matmul" / "mm.py", kernel)
    harmless = replace(data, faults={"none": ("import torch\n", "import torch  # indeed\n")})
    assert refusals(kernel, harmless, verdicts_of) == {"none": [Outcome.PASS]}
    with pytest.raises(ValueError, match="no 'nowhere'"):
        refusals(kernel, replace(data, faults={"gone": ("nowhere", "")}), verdicts_of)
