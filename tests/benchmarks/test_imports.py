"""Every benchmark finds what it imports; CI runs few of them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def imported(*names, path=ROOT):
    environment = {**os.environ, "PYTHONPATH": str(path)}
    command = [sys.executable, "-c", PROGRAM, *names]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_every_benchmark_can_be_imported():
    done = imported(*(f"benchmarks.{path.stem}" for path in sorted((ROOT / "benchmarks").glob("*.py"))))
    assert done.returncode == 0, done.stderr


def test_a_name_that_is_gone_would_be_seen(tmp_path):
    (tmp_path / "stale.py").write_text("from verify.judging import gone\n")
    done = imported("stale", path=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 1 and "cannot import name 'gone'" in done.stderr
