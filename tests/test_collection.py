"""Which files of tests are imported."""

from pathlib import Path

from warm import python

ROOT = Path(__file__).parents[1]
PROGRAM = """
import pytest
code = pytest.main(["--collect-only", "-q", "-p", "no:benchmark", "-m", "gpu", "tests/enable"])
from capture import sim
print(int(code), bool(sim._libraries))
"""


def test_what_installs_sim_is_not_imported_beside_tests_of_a_gpu():
    """test_readme does, test_native has tests of both kinds."""
    lines = python("-c", PROGRAM, cwd=ROOT).stdout.splitlines()
    files = {line.partition("::")[0] for line in lines if "::" in line}
    assert "tests/enable/test_native.py" in files and "tests/enable/test_readme.py" not in files
    assert lines[-1] == "0 False"
