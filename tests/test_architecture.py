"""The rules of CONTRIBUTING.md that a machine can hold."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARROWS = {
    "traces": set(),
    "models": set(),
    "capture": {"traces", "models"},
    "verify": {"traces"},
    "generate": {"traces", "verify"},
    "enable": {"traces", "models", "capture", "verify", "generate"},
}
MODULES = [p for package in ARROWS for p in sorted((ROOT / package).rglob("*.py"))]
MAX_LINES, MAX_FUNCTION = 400, 60


def name(path):
    return str(path.relative_to(ROOT))


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_follow_the_arrows(path):
    package = path.relative_to(ROOT).parts[0]
    ours = set(imported(ast.parse(path.read_text()))) & ARROWS.keys()
    assert ours <= ARROWS[package] | {package}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_sizes(path):
    text = path.read_text()
    assert text.count("\n") <= MAX_LINES
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    lengths = {f.name: f.end_lineno - f.body[0].lineno + 1 for f in functions}  # without the list of parameters
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION}


def test_recorder_needs_no_zoo():
    """`from capture import Recorder` must work beside a user's own `models`."""
    code = "import sys, capture; from capture import Recorder; sys.exit('models' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["--help"], ["capture", "--help"], ["trace", "show", "--help"]])
def test_help_imports_neither_torch_nor_triton(arguments):
    code = (
        "import sys; from enable.cli import run; run(sys.argv[1:]);"
        "sys.exit(bool({'torch', 'triton', 'openai', 'pandas'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Usage: enable" in result.stdout


def test_an_upward_import_would_be_seen():
    assert set(imported(ast.parse("def f():\n    from generate.library import Library\n"))) == {"generate"}
