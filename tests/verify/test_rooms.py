"""What a process that runs kernels has loaded: what it needs, and nothing of what judges."""

import subprocess
import sys
from pathlib import Path

import pytest

from verify.platforms import COMPILE, EXECUTE

NAMES = ("verify.", "enable.", "generate.", "capture.", "torch._dynamo.", "torch._inductor.")
OURS = f"sorted(m for m in sys.modules if m.startswith({NAMES}))"
NEEDED = {"verify.child", "verify.contract", "verify.sandbox"}  # rooms
FILES = {
    *("verify.excerpts", "verify.platforms", "verify.documents", "verify.language", "verify.limits", "verify.linking"),
    *("verify.meaning", "verify.syntax"),
}


def strange(modules):
    """Those that a child has no need of."""
    return [m for m in modules if m not in FILES and ".".join(m.split(".")[:2]) not in NEEDED]


@pytest.mark.parametrize("mode", [COMPILE, EXECUTE])
def test_the_child_knows_no_judge(start, probe, mode):
    zygote = start("full", mode)
    assert strange(eval(probe(zygote, f"return {OURS}"))) == []  # noqa: S307 - a list of names


@pytest.mark.parametrize("module", ["verify.child.serve", "verify.child.zygote"])
def test_importing_it_loads_no_judge(module):
    code = f"import sys, {module}; print({OURS})"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert strange(eval(told.stdout)) == []  # noqa: S307 - likewise


def test_a_judge_in_a_child_would_be_seen(start, probe):
    zygote = start("none")
    told = eval(probe(zygote, f"import verify.comparison.compare; return {OURS}"))  # noqa: S307 - likewise
    assert "verify.comparison.compare" in strange(told)
