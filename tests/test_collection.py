"""Which files of tests are imported."""

from pathlib import Path

from warm import python

ROOT = Path(__file__).parents[1]
PROGRAM = """
import sys
import pytest
code = pytest.main(["--collect-only", "-q", "-p", "no:benchmark", "-m", "gpu", "tests/enable"])
from capture import sim
imported = {name.rpartition(".")[2] for name in sys.modules}
print(int(code), "test_native" in imported, "test_readme" in imported, bool(sim._libraries))
"""


def test_what_installs_sim_is_not_imported_beside_tests_of_a_gpu():
    """test_readme does, test_native has tests of both kinds."""
    assert python("-c", PROGRAM, cwd=ROOT).stdout.splitlines()[-1] == "0 True False False"
