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
    "enablekit coverage --workspace other ": ["mlp"],
    "enablekit report --serve ": ["cnn", "nanogpt"],
    "enablekit report --since ": [],
    "enablekit report --campaign ": ["first"],
    "enablekit capture nanog": ["nanogpt"],
    "enablekit capture nanogpt --device c": ["cuda", "cpu"],
    "enablekit refine nanogpt --op gel": ["gelu", "gelu_backward"],
    "enablekit verify gelu_b": ["gelu_backward"],
    "enable -n tes": ["test"],
    "enablekit models xyz": [],
}


@pytest.fixture
def workspaces(tmp_path):
    for path in (".enable/traces/nanogpt.trace", ".enable/traces/cnn.trace", "other/traces/mlp.trace"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / ".enable" / "campaigns" / "first").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("line", COMPLETED)
def test_bash_completes(line, workspaces):
    words = " ".join(repr(word) for word in line.split(" "))
    script = f"""
    cd {workspaces}; eval "$({PROGRAM} shell)"
    COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    name=$(complete -p "${{COMP_WORDS[0]}}" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
    "$name"; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    result = run("bash", script)
    assert result.stdout.split() == COMPLETED[line], result


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here")
@pytest.mark.parametrize("line", ["enable verify gelu_b", "enablekit coverage nano", "enable capture nanogpt --opti"])
def test_zsh_completes(line, workspaces):
    """`_arguments`, which offers the words, is replaced by one that prints them."""
    script = f"""
    cd {workspaces}; eval "$({PROGRAM} shell)"; _arguments() {{ print -r -- "$@" }}
    words=({line}); CURRENT=$#words; ${{_comps[$words[1]]}}
    """
    result = run("zsh", script)
    expected = {"gelu_b": "gelu_backward", "nano": "nanogpt", "--opti": "--optimizer"}[line.split()[-1]]
    assert result.stdout.startswith(f'*: :(("{expected}"') and not result.stderr, result


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here")
@pytest.mark.parametrize(("line", "word"), [("enable verify gelu_b", "gelu_backward"), ("enablekit cov", "coverage")])
def test_fish_completes(line, word, workspaces):
    script = f"cd {workspaces}; enablekit shell fish | source; complete -C '{line}'"
    result = subprocess.run(
        ["fish", "--no-config", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"},
    )
    assert result.stdout.split()[0] == word, result


@pytest.mark.parametrize("line", ["enablekit cov", "enablekit capture nanog", "enablekit verify gelu_b"])
def test_completion_imports_no_torch(line):
    code = "import atexit, sys; from enable.cli import run; atexit.register(lambda: print('torch' in sys.modules))"
    code += "; run([])"
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_ENABLEKIT_COMPLETE": "complete_bash"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **words},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout.endswith("False\n"), done


def test_another_shell_is_refused():
    result = run("bash", f"{PROGRAM} shell fsh")
    assert result.returncode == 2 and "unknown shell 'fsh', did you mean fish?" in result.stderr
