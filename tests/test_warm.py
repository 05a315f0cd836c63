"""Programs that tests fork from a process which has imported torch are as those that an interpreter starts."""

import subprocess
import sys

import pytest
from warm import python

TOLD = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ["TOLD"], __name__, "torch" in globals(), "pytest" in sys.modules)
print("to the other", file=sys.stderr)
import beside
sys.exit(3)
"""


@pytest.mark.parametrize("kind", ["script", "-m", "-c"])
def test_a_program_is_told_what_it_is_told_otherwise(tmp_path, kind, monkeypatch):
    (tmp_path / "told.py").write_text(TOLD)
    (tmp_path / "beside.py").write_text("print('found')\n")
    monkeypatch.setenv("TOLD", "by the environment")
    words = {"script": ["told.py"], "-m": ["-m", "told"], "-c": ["-c", TOLD]}[kind]
    forked = python(*words, "a", 2, cwd=tmp_path)
    command = [sys.executable, *words, "a", "2"]
    alone = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (alone.returncode, alone.stdout.splitlines()[1:], alone.stderr) == (3, ["found"], "to the other\n")
    assert (forked.returncode, forked.stdout, forked.stderr) == (3, alone.stdout, alone.stderr)


def test_one_that_hangs_is_ended(tmp_path):
    with pytest.raises(TimeoutError, match="begun"):
        python("-c", "import time; print('begun', flush=True); time.sleep(600)", cwd=tmp_path, timeout=2)
