"""The shell function, in real shells."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
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


OURS = {
    "--help": "Usage: enable [OPTIONS]",
    "--version": f"enablekit {version('enablekit')}, torch ",
    "--workspace here trace show x": "enable: no trace 'x' (here/traces holds none yet)",
    "trace show x --workspace=here": "enable: no trace 'x' (here/traces holds none yet)",
    "covrage x": "enable: No such command 'covrage', did you mean coverage?",
    "--verson": "enable: No such option: --verson, did you mean --version?; see: enable --help",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_no_builtins_reaches_the_program(shell, tmp_path):
    typed = "; ".join(f"enable {words} 2>&1; echo; echo ------" for words in OURS)
    result = run(shell, f'cd {tmp_path}; eval "$({PROGRAM} shell)"; {typed}')
    assert not result.stderr
    for told, said in zip(result.stdout.split("------\n"), OURS.values(), strict=False):
        assert said in told.strip().split("\n")[0]
        assert told.startswith(("Usage", "enablekit")) or told.strip().count("\n") == 0, told


def test_words_of_the_builtin_of_bash():
    script = (
        f'eval "$({PROGRAM} shell)"; enable | head -1; enable -n echo test; enable test; type -t echo test; enable -s'
    )
    result = run("bash", script)
    assert result.stdout.split("\n")[:3] == ["enable .", "file", "builtin"] and "enable -s" not in result.stderr
    assert "enable set" in result.stdout  # of the special builtins


def test_words_of_the_builtin_of_bash_that_it_refuses():
    result = run("bash", f'eval "$({PROGRAM} shell)"; enable -x; echo "status $?"')
    assert "invalid option" in result.stderr and "status 2" in result.stdout


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
def test_words_of_the_builtin_of_zsh():
    script = (
        f'eval "$({PROGRAM} shell)"; disable -m "ech*"; enable -m "ech*"; whence -w echo; disable -r if; enable -r if'
    )
    result = run("zsh", script)
    assert "echo: builtin" in result.stdout and not result.stderr, result


COMPLETED = {
    "enablekit cov": ["coverage"],
    "enable trace l": ["list"],
    "enable trace show ": ["cnn", "nanogpt"],
    "enablekit coverage nano": ["nanogpt"],
    "enablekit coverage nanogpt --pl": ["--platform"],
    "enablekit coverage nanogpt --platform s": ["sim"],
    "enablekit --workspace other coverage ": ["mlp"],
    "enablekit report --serve ": ["cnn", "nanogpt"],
    "enablekit report --since ": [],
    "enablekit refine nanogpt --op ": [],
    "enable -n tes": ["test"],
    "enablekit models xyz": [],
}


@pytest.mark.parametrize("line", COMPLETED)
def test_bash_completes(line, tmp_path):
    for path in (".enable/traces/nanogpt.trace", ".enable/traces/cnn.trace", "other/traces/mlp.trace"):
        (tmp_path / path).mkdir(parents=True)
    words = " ".join(repr(word) for word in line.split(" "))
    script = f"""
    cd {tmp_path}; eval "$({PROGRAM} shell)"
    COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    name=$(complete -p "${{COMP_WORDS[0]}}" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
    "$name"; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = run("bash", script)
    assert result.stdout.split() == COMPLETED[line], result


def test_the_line_for_completion_costs_no_import_of_torch(tmp_path):
    code = "import sys; from enable.cli import run; run(sys.argv[1:]); sys.exit('torch' in sys.modules)"
    words = ["shell", "--complete", "1", "--", "enablekit", "cov"]
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=Path(__file__).parents[2], capture_output=True)
    assert done.returncode == 0 and done.stdout == b"coverage\n"
