"""The shell function, in real shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).parent / "enablekit"
SHELLS = [
    pytest.param(s, marks=pytest.mark.skipif(not shutil.which(s), reason=f"no {s} here")) for s in ("bash", "zsh")
]


def run(shell, script, **environment):
    flags = ["--norc", "--noprofile"] if shell == "bash" else ["-f"]
    env = {**os.environ, **environment}
    return subprocess.run([shell, *flags, "-c", script], capture_output=True, text=True, env=env, timeout=60)


@pytest.mark.parametrize("shell", SHELLS)
def test_our_commands_reach_the_program(shell):
    result = run(shell, f'eval "$({PROGRAM} shell)"; enable models')
    assert result.returncode == 0 and "nanogpt:" in result.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_exit_status_and_arguments_pass_through(shell):
    result = run(shell, f'eval "$({PROGRAM} shell)"; enable capture "no such model"; echo "status $?"')
    assert "'no such model'" in result.stderr and "status 2" in result.stdout


def test_bash_builtin_still_works():
    result = run("bash", f'eval "$({PROGRAM} shell)"; enable -n test; enable -n; enable test; type -t test')
    assert result.stdout.split() == ["enable", "-n", "test", "builtin"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_zsh_builtin_still_works():
    result = run("zsh", f'disable echo; eval "$({PROGRAM} shell)"; enable echo; whence -w echo')
    assert "echo: builtin" in result.stdout


def test_the_function_does_not_depend_on_the_search_path():
    result = run("bash", f'eval "$({PROGRAM} shell)"; PATH=/usr/bin:/bin; enable models')
    assert result.returncode == 0 and "nanogpt:" in result.stdout


def test_without_the_function_the_builtin_hides_the_program():
    result = run("bash", "enable models", PATH=f"{PROGRAM.parent}:{os.environ['PATH']}")
    assert result.returncode != 0 and "nanogpt" not in result.stdout
