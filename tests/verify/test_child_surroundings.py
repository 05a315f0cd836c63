"""Children where Python finds its packages by PYTHONPATH, and children that cannot start."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from traces import UserError
from verify.platforms import COMPILE
from verify.sandbox import confine
from verify.sandbox.children import Zygote

ROOT = Path(__file__).parents[2]


def test_packages_that_only_pythonpath_names_reach_the_children(tmp_path):
    venv.create(tmp_path / "bare", symlinks=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])}
    program = "from verify.judging.smoke import smoke; print(smoke())"
    command = [tmp_path / "bare/bin/python", "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=200)
    assert run.stdout.startswith("a kernel was compiled, executed and compared"), run.stderr


def test_the_last_words_of_a_child_that_cannot_start_are_told(monkeypatch):
    monkeypatch.setattr(confine, "search_path", lambda: "")
    monkeypatch.setattr(sys, "executable", sys.base_prefix + "/bin/python3")
    with pytest.raises(UserError, match="the compile process did not start: .*No module named 'verify'") as told:
        Zygote(COMPILE)
    assert "\n" not in str(told.value)
