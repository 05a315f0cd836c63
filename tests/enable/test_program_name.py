"""Printed commands begin with the name that the user typed, and work when pasted."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from program import enable

from traces.program import NAME_VARIABLE, program_label, typed_name

BIN = Path(sys.executable).parent
MODEL = """
import torch

def make():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    step = lambda: model(torch.randn(2, 4)).erf().sum().backward()
    return step
"""


def bash(script, cwd, **environment):
    env = {k: v for k, v in os.environ.items() if k not in (NAME_VARIABLE, "TRITON_INTERPRET")} | environment
    words = ["bash", "--norc", "--noprofile", "-c", script]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, env=env, timeout=250)


def hints(text):
    """The commands of a summary by their headings."""
    pairs = (line.strip().partition("  ") for line in text.splitlines() if line.startswith("  "))
    return {heading: command.strip() for heading, _, command in pairs}


def test_the_commands_that_coverage_prints_work_when_pasted(tmp_path):
    (tmp_path / "train.py").write_text(MODEL)
    program = str(BIN / "enablekit")
    recorded = bash(f"{program} capture train:make", tmp_path)
    assert recorded.returncode == 0, recorded.stderr
    next_ = recorded.stdout.rpartition("next")[2].strip()
    assert next_.startswith(f"{program} coverage ")
    covered = bash(next_, tmp_path)
    printed = hints(covered.stdout)
    assert printed["report"].startswith(f"{program} report ")
    reported = bash(printed["report"], tmp_path)
    assert reported.returncode == 0 and (tmp_path / "report.html").is_file(), reported.stderr
    assert " enable " not in covered.stdout + reported.stdout + recorded.stdout


def test_a_program_on_the_path_has_its_short_name(tmp_path):
    path = f"{BIN}:{os.environ['PATH']}"
    unknown = bash("enablekit trace show x", tmp_path, PATH=path)
    command = unknown.stderr.rpartition(": ")[2].strip()
    assert command == "enablekit models"
    assert "nanogpt:" in bash(command, tmp_path, PATH=path).stdout


@pytest.mark.parametrize("package", ["enablekit", "enable"])
def test_python_with_a_module_is_printed_as_typed(tmp_path, package):
    unknown = bash(f"{shlex.quote(sys.executable)} -m {package} trace show x", tmp_path)
    command = unknown.stderr.rpartition(": ")[2].strip()
    assert command == shlex.join([sys.executable, "-m", package, "models"])
    assert unknown.stderr.startswith(f"{package}: ")
    assert "nanogpt:" in bash(command, tmp_path).stdout


def test_the_function_marks_itself_for_the_program_alone(tmp_path):
    script = f'eval "$({BIN}/enablekit shell)"; enable trace show x; echo "left: ${{{NAME_VARIABLE}-nothing}}"'
    result = bash(script, tmp_path)
    assert result.stderr.rstrip().endswith("what can be recorded: enable models")
    assert result.stdout == "left: nothing\n"


def test_help_pages_use_the_name(tmp_path):
    pages = [enable(*words, "--help", cwd=tmp_path, ENABLE_PROGRAM_NAME="kit").stdout for words in ([], ["capture"])]
    assert "Usage: kit [OPTIONS]" in pages[0] and "kit COMMAND --help" in pages[0]
    assert "builtin called `enable`" in pages[0]
    assert "  kit capture nanogpt\n" in pages[1] and "(see: kit models)" in pages[1]


def test_a_path_is_kept_where_the_search_path_finds_another(tmp_path, monkeypatch):
    script = str(BIN / "enablekit")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert typed_name(script, ["python", script]) == script
    monkeypatch.setenv("PATH", str(BIN))
    assert typed_name(script, ["python", script]) == "enablekit"
    assert typed_name(str(BIN / "enable"), ["python"]) == str(BIN / "enable")  # bash's builtin has the short name
    assert typed_name("my tools/enablekit", ["python"]) == "'my tools/enablekit'"


def test_python_users_get_a_name_that_every_shell_runs(monkeypatch):
    monkeypatch.delenv(NAME_VARIABLE)
    assert program_label() == "enablekit"
