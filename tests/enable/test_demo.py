"""The demo, as `make demo` runs it: its recordings must answer the prompts of today."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_demo(tmp_path):
    env = os.environ | {"BIN": str(Path(sys.executable).parent), "DEMO": str(tmp_path / "demo")}
    result = subprocess.run(["bash", ROOT / "demo" / "run.sh"], env=env, capture_output=True, text=True, timeout=880)
    assert result.returncode == 0, result.stderr
    before, after = result.stdout.split("$ enable refine")
    assert "31 of 33 that need a kernel" in before
    assert "2 of 2 operators passed" in after and "33 of 33 that need a kernel (100.0 %)" in after
    assert "  refined            2 of the covered overloads" in after
