"""Which violations are called CHEAT, and which tell of what cannot run."""

from pathlib import Path

import pytest
from corpus import replaced

from verify.child.probe import KERNEL
from verify.judging.candidate import read_candidate
from verify.lint import load_profile
from verify.lint.gravity import gravest


def found(source):
    violations = read_candidate(source, Path("k.py"), load_profile("triton-cuda"), "aten::neg").violations
    assert violations
    return gravest(violations)


@pytest.mark.parametrize(
    "old, new, rule",
    [
        ("-tl.load", "-tl.lode", "name"),  # a name that does not exist
        ("tl.arange", "tl.arrange", "name"),
        ("torch.empty_like", "torch.emptylike", "name"),
        ("self.numel()", "self.nummel()", "attribute"),
        ("mask=i < n)", "mask=j < n)", "unknown-name"),
        ("def wrapper(self):", "def wrapper(self)", "syntax"),
        ('DTYPES = ("float32",)', 'DTYPES = ("float31",)', "dtypes"),
    ],
)
def test_what_does_not_exist_gives_no_answer(old, new, rule):
    violation, cheats = found(replaced(KERNEL, (old, new)))
    assert not cheats and violation.rule == rule


@pytest.mark.parametrize(
    "body, rule",
    [
        ("return torch.neg(self)", "name"),
        ("return -self", "tensor-operator"),
        ("return self.neg()", "attribute"),
        ("return torch.ops.aten.neg.default(self)", "name"),
        ("import os; return self", "import"),
    ],
)
def test_what_could_answer_without_a_kernel_is_a_cheat(body, rule):
    source = KERNEL.replace("    return out\n", f"    {body}\n")
    violation, cheats = found(source)
    assert cheats and violation.rule == rule
    both = source.replace("-tl.load", "-tl.lode")  # on an earlier line, and not what is told
    assert found(both) == (violation, True)
