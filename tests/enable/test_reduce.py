"""`enable reduce`: a failing kernel and its inputs become a minimal program that fails in the same way."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from program import enable

from enable.reduce import edits, inputs
from enable.reduce.failure import Failure, normalised
from enable.reduce.reduction import Reducer
from verify.outcome import Outcome, Verdict

PROGRAM = '''"""A docstring."""
import torch
OVERLOADS = ("aten::mm",)

def helper(a, b):
    return a + b

def unused(a):
    return a

def kernel(a, b, n, FLAG, BLOCK):
    x = helper(a, 3)
    y = x * 2
    for i in range(0, n, BLOCK):
        if FLAG:
            bug(y + 1, mask=n)
        else:
            y = helper(y, b)
    return y

def bug(a, mask=0):
    return a

def wrapper(self, other):
    kernel(self, other, 4, FLAG=True, BLOCK=32)
'''


class Fake:
    """Trials without a judge: a program fails if `predicate` is true for its text and its arguments."""

    def __init__(self, predicate, outcome=Outcome.COMPILE_ERROR, answer=lambda source: []):
        self.verdict = Verdict("case", outcome, "the assertion")
        self.failure, self.count = Failure.of(self.verdict), 0
        self._predicate, self._answer = predicate, answer

    def judge(self, source, arguments):
        self.count += 1
        failed = self._predicate(source, arguments)
        return self.verdict if failed else Verdict("case", Outcome.PASS), self._answer(source)


def reduced(trials, seconds=60.0, on_trial=lambda reduction: None):
    arguments = {"self": torch.randn(3, 20).half(), "other": torch.randn(20, 5).half()}
    return Reducer(trials, PROGRAM, arguments, time.monotonic() + seconds).reduce(on_trial)


def calls_bug(source, arguments):
    called = [ast.unparse(n.func) for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)]
    shapes = [tuple(tensor.shape) for tensor in arguments.values()]
    return {"bug", "kernel"} <= set(called) and [*map(len, shapes)] == [2, 2] and shapes[0][1] == shapes[1][0] >= 2


def test_what_the_failure_does_not_need_is_removed():
    trials = Fake(calls_bug)
    result = reduced(trials)
    assert result.source.split() == [
        "def",
        "kernel():",
        "bug()",
        "def",
        "bug():",
        "pass",
        "def",
        "wrapper():",
        "kernel()",
    ]
    assert {name: inputs.code(value) for name, value in result.arguments.items()} == {
        "self": "torch.zeros((1, 2), dtype=torch.float32)",
        "other": "torch.zeros((2, 1), dtype=torch.float32)",
    }
    assert trials.count < 300 and not result.ended


def test_a_wrong_program_keeps_its_wrong_answer():
    """Any program without a store is wrong, too; its answer is another one."""
    result = reduced(Fake(lambda source, arguments: True, Outcome.WRONG, lambda source: ["* 2" in source]))
    assert "* 2" in result.source and len(result.source) < len(PROGRAM) / 2


def test_the_smallest_so_far_is_kept():
    def interrupt(reduction):
        if "unused" not in reduction.source:
            raise KeyboardInterrupt

    trials = Fake(calls_bug)
    result = reduced(trials, on_trial=interrupt)
    assert result.ended == "interrupted" and "unused" not in result.source and "helper" in result.source
    late = Reducer(trials, PROGRAM, result.arguments, time.monotonic() + 60)
    late._deadline = 0
    assert late.reduce(lambda reduction: None).ended == "the time is over"


def test_parameters_leave_with_their_arguments():
    tree = edits.prepared("def f(a, B=4):\n    return a + B\n\ndef g(x):\n    return f(x, 2) + f[1, 2](x, B=2)\n")
    edited = edits.applied(tree, next(edits.parameters(tree)))
    assert ast.unparse(edited).split("\n\n") == [
        "def f(a):\n    return a + 2",
        "def g(x):\n    return f(x) + f[1, 2](x)",
    ]


@pytest.mark.parametrize(
    ("message", "other"),
    [
        ("error: size 12 at line 7, column 4", "error: size 3 at line 9, column 16"),
        ("/tmp/tmpx1/k.py:7:3: error: no", "/tmp/tmpx2/m.py:17:3: error: no"),
    ],
)
def test_messages_are_compared_without_numbers_and_places(message, other):
    assert normalised(message) == normalised(other) and "error" in normalised(message)


def test_inputs_are_written_as_they_are():
    strided = torch.arange(6.0).view(2, 3).t()
    for value in (strided, torch.tensor([float("inf"), -1.5]), torch.ones(2, dtype=torch.int8), [1, None], torch.half):
        again = eval(inputs.code(value), {"torch": torch, "inf": float("inf"), "nan": float("nan")})  # noqa: S307
        same = torch.equal(again, value) if isinstance(value, torch.Tensor) else again == value
        assert same and getattr(again, "stride", lambda: ())() == getattr(value, "stride", lambda: ())()


HINTED = """\
# op: aten::sqrt
@triton.jit
def unused(x):
    return tl.sqrt(x)

@triton.jit
def kernel(x_ptr, out_ptr):
    offset = tl.max_contiguous(tl.arange(0, 64), -7)
    tl.store(out_ptr + offset, tl.load(x_ptr + offset))

def wrapper(self):
    out = torch.empty_like(self)
    kernel[(1,)](self, out, num_warps=4)
    return out
"""


def test_an_assertion_of_the_compiler(tmp_path):
    """Triton 3.6 to 3.9 fail to compile the negative hint."""
    (tmp_path / "hinted.py").write_text(HINTED)
    done = enable("reduce", "hinted.py", "--minutes", "0.2", "-o", "small.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "COMPILE_ERROR: Assertion `ValueT::join" in done.stderr and "python small.py" in done.stdout
    text = (tmp_path / "small.py").read_text()
    assert "COMPILE_ERROR when compiling for cuda:90" in text and "def unused" not in text
    again = subprocess.run([sys.executable, "small.py"], capture_output=True, text=True, cwd=tmp_path)
    assert again.returncode == 1 and "expected `join` to be monotonic" in again.stderr


def test_a_file_that_passes(tmp_path):
    kernel = Path(__file__).parents[1] / "verify/corpus/honest/neg_zero_size_and_scalar.py"
    done = enable("reduce", kernel, cwd=tmp_path)
    assert done.returncode == 2 and "passes on sim" in done.stderr and "enable verify" in done.stderr
