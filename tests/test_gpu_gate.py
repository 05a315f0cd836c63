"""The GPU gate (tests/gpu_gate), on the platform sim: what it judges, what it writes, and how it ends."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from warm import python

from generate import BLOCKS
from generate.kernel_library import KERNELS
from tests.gpu_gate import page as pages
from tests.gpu_gate.__main__ import main
from tests.gpu_gate.cases import EXTENDED, choose, evenly, spread
from tests.gpu_gate.judging import Results, counted
from tests.kernels.conftest import case_of
from verify.cases.case import case_of_values
from verify.cases.samples import opinfo_cases
from verify.contract.kernel_file import KernelFile
from verify.outcome import Outcome, Verdict

ROOT = Path(__file__).parents[1]
NAMES = ("pointwise/exp", "resampling/upsample_nearest3d")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shard", "0/2"], "'0/2' is not K/N with 1 <= K <= N"),
        (["--shard", "3/2"], "'3/2' is not K/N"),
        (["--shard", "half"], "'half' is not K/N"),
        (["--seconds", "0"], "'0' is not a positive number"),
        (["--seconds", "soon"], "'soon' is not a positive number"),
        (["--platform", "abacus"], "invalid choice: 'abacus'"),
        (["--defer", " "], "a reason is missing"),
        (["--platform", "sim"], "of platform 'cuda', not 'sim'"),
        (["--platform", "sim", "--out", "x.json", "--only", "pointwise/expp"], "do you mean pointwise/exp"),
        (["--library", "nowhere"], "no kernel library at nowhere"),
        (["--surprise"], "unrecognized arguments: --surprise"),
    ],
)
def test_a_bad_argument_is_refused_in_one_line(words, message, capsys):
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr().err
    assert status == 2 and message in said and said.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_machine_without_a_gpu_is_told_so(capsys, tmp_path):
    assert main(["--out", str(tmp_path / "gpu.json"), "--only", "exp"]) == 2
    assert "has no such device" in capsys.readouterr().err and not (tmp_path / "gpu.json").exists()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A library of two kernel files, and a function that runs the gate on it."""
    directory = tmp_path_factory.mktemp("gate")
    for name in NAMES:
        path = directory / "kernels" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(KERNELS / f"{name}.py", path)
    places = {"library": "kernels", "workspace": "workspace", "out": "gpu.json"}
    options = [word for option, place in places.items() for word in (f"--{option}", directory / place)]

    def run(*words):
        command = ("-m", "tests.gpu_gate", "--platform", "sim", "--commit", "1a2b3c", *options, *words)
        result = python(*command, cwd=ROOT)
        return result, pages.read(directory / "gpu.json", "sim")

    return directory, run


@pytest.mark.timeout(600)
def test_a_run_that_was_interrupted_goes_on_and_a_fault_makes_it_fail(scratch):
    directory, run = scratch
    result, page = run("--seconds", "1")
    assert result.returncode == 1 and "the same command goes on" in result.stderr
    assert "0 of 2 kernel files judged\n2 kernel files are left: pointwise/exp, " in result.stdout
    assert page["kernels"] == page["green"] == {} and not page["complete"]

    result, page = run("--shard", "1/2")
    assert (result.returncode, list(page["kernels"])) == (0, [NAMES[0]]), result.stdout + result.stderr
    assert pages.state(page) == "incomplete"

    result, page = run("--shard", "2/2")
    assert result.returncode == 0 and result.stdout.startswith("1 of 1 kernel files judged: PASS 1\n")
    assert pages.state(page) == "green" and page["green"]["kernels"] == len(page["kernels"]) == 2
    assert all(row["passed"] + row["skipped"] == row["cases"] > 3 for row in page["kernels"].values())

    path = directory / "kernels" / "pointwise" / "exp.py"
    path.write_text(path.read_text().replace("tl.exp(x)", "tl.exp(x) + 1"))
    result, later = run()
    row = later["kernels"]["pointwise/exp"]
    assert result.returncode == 1 and "2 of 2 kernel files judged: WRONG 1, PASS 1" in result.stdout
    assert row["outcome"] == "WRONG" and row["key"] != page["kernels"]["pointwise/exp"]["key"]
    assert f"WRONG pointwise/exp: {row['detail']}\n  enable --workspace " in result.stdout
    assert f"--platform sim --seed 0 --case {row['case']}\n" in result.stdout
    assert pages.state(later) == "failed" and later["green"] == page["green"]


def test_calls_of_the_tests_stand_in_for_samples_that_opinfo_lacks():
    kernel = KernelFile.read(KERNELS / "resampling" / "upsample_nearest3d.py", (BLOCKS,))
    assert opinfo_cases(list(kernel.overloads), kernel.dtypes) == []
    cases = choose(kernel)
    given = [case for case in cases if not case.made]
    calls = runpy.run_path(str(ROOT / "tests" / "kernels" / "resampling" / "upsample_nearest3d.py"))["CASES"]
    known = {case_of(overload, call).id for overload in kernel.overloads for call in calls[overload]}
    assert given and {case.id for case in given} <= known
    assert 0 < len(cases) - len(given) <= EXTENDED


def test_samples_are_spread_from_the_smallest_to_the_largest():
    def sample(overload, size, dtype=torch.float32):
        return case_of_values(overload, self=torch.zeros(size, dtype=dtype))

    given = [sample("aten::exp", n) for n in (5, 1, 4, 2, 3)] + [sample("aten::sin", 2, torch.float64)]
    chosen = spread(given, ("float32", "float64"))
    assert [case.shapes for case in chosen] == [((1,),), ((3,),), ((5,),), ((2,),)]
    assert spread([], ("float32",)) == []
    many = [sample("aten::exp", n, d) for d in (torch.float32, torch.float16, torch.int8, torch.int16) for n in (1, 9)]
    assert [case.shapes for case in spread(many, ("int8", "int16", "float16", "float32"))] == [((9,),)] * 4
    beside = [*given, sample("aten::cos", 1)]
    assert [case.overload for case in spread(beside, ("float32", "float64"))][-1] == "aten::cos"


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [(0, 1, []), (0, 3, []), (1, 3, [0]), (2, 3, [0, 1]), (5, 1, [4]), (5, 2, [0, 4]), (5, 3, [0, 2, 4])],
)
def test_cases_are_taken_at_even_distances_and_may_be_fewer_than_wanted(count, most, expected):
    assert evenly(range(count), most) == expected


def test_a_row_has_the_first_failure_and_none_if_cases_are_left():
    cases = [case_of_values("aten::exp", self=torch.zeros(n)) for n in (1, 2, 3)]
    skipped, passed, wrong = (
        Verdict(case.id, outcome, f"{outcome} it is")
        for case, outcome in zip(cases, (Outcome.SKIPPED, Outcome.PASS, Outcome.WRONG), strict=True)
    )

    def row(*verdicts, of=cases):
        results = Results({"a/b": of}, {("aten::exp", verdict.case): verdict for verdict in verdicts})
        return results.row("a/b")

    assert row(skipped, passed) is None and Results().row("a/b") is None
    failed = {"cases": 3, "passed": 1, "skipped": 0, "outcome": "WRONG", "case": wrong.case, "detail": "WRONG it is"}
    assert row(passed, wrong) == failed
    assert row(skipped, passed, of=cases[:2]) == {"cases": 2, "passed": 1, "skipped": 1, "outcome": "PASS"}
    assert row(skipped, of=cases[:1]) == {
        **{"cases": 1, "passed": 0, "skipped": 1},
        **{"outcome": "SKIPPED", "detail": "SKIPPED it is"},
    }
    assert row(of=[])["detail"] == "there is no case"


def test_tests_are_counted(tmp_path):
    (tmp_path / "test_three.py").write_text(
        "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pytest.skip()\n"
        "@pytest.fixture\ndef broken(): raise OSError\ndef test_d(broken): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=results.xml", "."]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1
    assert counted(tmp_path / "results.xml") == {"passed": 1, "failed": 2, "skipped": 1}
