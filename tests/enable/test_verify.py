"""`enable verify` and `enable lint` as a user types them."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from corpus import bad_kernels
from program import enable

from enable.cli import run
from enable.options import CACHE_VARIABLE
from enable.workspace import Workspace
from verify import platforms

ROOT = Path(__file__).parents[2]
HONEST = ROOT / "tests" / "verify" / "corpus" / "honest" / "neg_zero_size_and_scalar.py"


def test_what_is_said_of_a_wrong_kernel_can_be_run_again(tmp_path):
    bad = tmp_path / "exp_first_block_only.py"
    bad.write_text(bad_kernels()["exp_first_block_only"])
    found = enable("verify", str(bad), "--seed", "3", cwd=tmp_path)
    assert found.returncode == 1
    assert all(line.startswith("verify exp_first_block_only.py") for line in found.stderr.splitlines()), found.stderr
    first, detail, *_, again = found.stdout.splitlines()
    assert first == "exp_first_block_only.py: WRONG [compare]" and "elements wrong" in detail
    assert found.stdout.count(detail.strip()) == 1
    words = shlex.split(again.strip().removeprefix("again").strip())
    assert words[:2] == ["enable", "verify"] and "--case" in words
    repeated = enable(*words[1:], cwd=tmp_path)
    assert repeated.returncode == 1 and repeated.stdout.splitlines()[:2] == [first, detail]
    assert "  1 case run, " in repeated.stdout


def test_an_answer_on_standard_input(tmp_path):
    answer = f"Here it is.\n```python\n{HONEST.read_text()}\n```\nGood luck.\n"
    arguments = ("--op", "aten::neg", "--cases", "opinfo", "--json")
    found = enable("verify", "-", *arguments, cwd=tmp_path, stdin=answer)
    said = json.loads(found.stdout)
    assert found.returncode == 0 and said["outcome"] == "PASS" and said["layer"] == said["rule"] == ""
    assert said["cases"] == said["passed"] + said["skipped"] > 0 and said["sandbox"].startswith("landlock")
    assert said["overloads"] == ["aten::neg"]


def test_a_workspace_that_was_copied_judges_as_before(tmp_path, monkeypatch):
    """Triton's cache of compiled kernels has whole paths in it, of a place that children may no longer read."""
    monkeypatch.delenv(CACHE_VARIABLE)
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    for place in (here, there):
        found = enable("verify", str(HONEST), "--op", "aten::neg", "--cases", "opinfo", cwd=place)
        assert found.returncode == 0, found.stdout
        if place is here:
            shutil.copytree(here, there)
            (there / ".enable" / "verdicts.sqlite").unlink()


@pytest.mark.parametrize("name", ["neg", "bitwise_and.Tensor"])
def test_a_kernel_of_the_library_by_its_operator(tmp_path, name):
    """bitwise_and takes no floats; logical operators call it with bool in every dtype."""
    found = enable("verify", f"aten::{name}", "--cases", "opinfo", cwd=tmp_path)
    assert found.returncode == 0, found.stdout
    assert f"{name.removesuffix('.Tensor')}.py: PASS" in found.stdout


def test_a_pass_says_of_which_dtypes_and_ranks(tmp_path):
    found = enable("verify", str(HONEST), "--op", "aten::neg", "--cases", "opinfo", cwd=tmp_path)
    assert "cases passed: bfloat16, float16, float32, float64, int16, " in found.stdout, found.stdout


def test_a_claim_of_no_floats_is_refused(tmp_path):
    source = (ROOT / "generate/kernels/pointwise/exp.py").read_text()
    path = tmp_path / "bool_alone.py"
    path.write_text(re.sub(r"DTYPES = \([^)]*\)", 'DTYPES = ("bool",)', source))
    found = enable("verify", str(path), "--cases", "opinfo", cwd=tmp_path)
    assert "bool_alone.py: COMPILE_ERROR [lint]" in found.stdout and "no floating dtype" in found.stdout, found.stdout


def test_no_case_is_no_pass(tmp_path):
    """Nothing of OpInfo calls it, and no call of its schema alone has an answer."""
    found = enable("verify", str(HONEST), "--op", "aten::_pack_padded_sequence", "--json", cwd=tmp_path)
    assert found.returncode == 1
    said = json.loads(found.stdout)
    assert said["outcome"] == "SKIPPED" and said["passed"] == 0, said


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "name a FILE, an OPERATOR, or --all, or --report CORPUS"),
        (("nope.py",), "nope.py: cannot be read"),
        (("directory",), "directory: is a directory; name a kernel file, an operator, or --all for the library"),
        (("directory.py",), "directory.py: cannot be read (Is a directory); name a file"),
        (("latin.py",), "latin.py: cannot be read (not a text in UTF-8); name a file"),
        ((str(HONEST), "--all"), "name a FILE"),
        (("--all", "--op", "exp"), "--op names the operator for one FILE"),
        ((str(HONEST), "--op", "aten::nope"), "no such operator"),
        ((str(HONEST), "--op", "expp"), "did you mean exp"),
        ((str(HONEST), "--cases", "mine"), "choose from opinfo, extended, traces, trace:NAME"),
        ((str(HONEST), "--cases", "trace:none"), "no trace 'none'"),
        ((str(HONEST), "--without", "run"), "'run' cannot be left out, did you mean rerun? choose from lint, compile"),
        ((str(HONEST), "--without", "x"), "'x' is not a layer"),
        ((str(HONEST), "--profile", "x"), "choose one of: mtia-like, triton, triton-cuda, triton-nvidia"),
        ((str(HONEST), "--sandbox", "x"), "choose from full, none"),
        ((str(HONEST), "--platform", "x"), "unknown platform 'x'"),
        ((str(HONEST), "--case", "x", "--seed", "1"), "no case x"),
        (("aten::_dirichlet_grad",), "no kernel of the library serves it; write one: enable"),
        (("--report", "."), "name the directory of a corpus"),
    ],
)
def test_bad_input_is_told_in_a_line(arguments, words, tmp_path):
    for name in ("directory", "directory.py"):
        (tmp_path / name).mkdir()
    (tmp_path / "latin.py").write_bytes(b"\xff")
    found = enable("verify", *arguments, cwd=tmp_path)
    assert found.returncode == 2 and found.stdout == ""
    assert found.stderr.startswith("enable: ") and found.stderr.count("\n") == 1, found.stderr
    assert words in found.stderr


def test_a_kernel_is_judged_with_the_blocks_of_its_platform(tmp_path, monkeypatch, capsys):
    """What is judged is what is served there: the product through descriptors, by name as well as by file."""
    monkeypatch.chdir(tmp_path)
    Path("chip.yaml").write_text("base: sim\ndescription: the blocks of cuda\nlint: triton-nvidia\n")
    few = ("--cases", "opinfo", "--limit", "1", "--seed", "1", "--platform", "./chip.yaml")
    assert run(["verify", "mm", *few]) == 0, capsys.readouterr().out
    platform = platforms.load("./chip.yaml")
    workspace = Workspace(tmp_path / ".enable")
    served, plain = workspace.library(None, platform).match("aten::mm"), workspace.library(None, None).match("aten::mm")
    store = workspace.verdicts()
    try:
        standings = store.standings(platform)
    finally:
        store.close()
    assert standings[served.kernels, "aten::mm"].passed and not standings[plain.kernels, "aten::mm"].passed
    assert run(["verify", str(served.kernel.path), *few]) == 0, capsys.readouterr().out


def test_lint_tells_every_violation(tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text("# op: exp\ndef wrapper(self):\n    import os\n    return eval('torch.exp')(self)\n")
    found = enable("lint", str(kernel), cwd=tmp_path)
    assert found.returncode == 1
    assert "eval" in found.stdout and "import" in found.stdout and "instead" in found.stdout
    assert enable("lint", str(HONEST), cwd=tmp_path).returncode == 0


def test_what_is_only_compiled_was_not_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["verify", str(HONEST), "--compile-only", "--limit", "1", "--cases", "opinfo"]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("neg_zero_size_and_scalar.py: compiles\n") and "cases compile, none was run" in out
    assert "passed" not in out and "PASS" not in out
