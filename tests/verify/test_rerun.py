"""Files that lint has not read and that have the guards say what they like: their launches are run without them."""

import ast
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from shared import judging

from generate import BLOCKS
from generate.kernel_library import KERNELS
from verify.cases.case import case_of_values
from verify.child.rerun import kernels_alone
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.job import Job
from verify.judging.rerun import is_rerun
from verify.outcome import Outcome

HEAD = '''"""{schema}"""
import struct, sys, time
import torch
import triton
import triton.language as tl

OVERLOADS = ("{overload}",)
DTYPES = ("float32",)
MASK: tl.constexpr = 0xFFFF

@triton.jit
def kernel_copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def kernel_fill(out, value, BITS: tl.constexpr):
    tl.store(out, value.to(tl.int32).to(tl.float32, bitcast=True) if BITS else value)

@triton.jit
def kernel_double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value + value, mask=i < n)

INTERPRETED = type(kernel_copy).__name__ == "InterpretedFunction"

def launched(kernel, x):
    out = torch.empty(x.shape, dtype=x.dtype)
    n = out.numel()
    kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
    return out

class Deaf(dict):
    def __setitem__(self, name, value): pass

def unseen(function, *args):
    """An operator of ATen's, of which no guard hears."""
    guards = sys.modules["verify.child.guards"]
    guards.notes.operators = Deaf()
    with torch.utils._python_dispatch._disable_current_modes():
        return function(*args)

def wrapper(self{parameters}):
{body}
'''
ROLL = {
    "schema": "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    "overload": "aten::roll",
    "parameters": ", shifts, dims=()",
}
GIVEN = {"aten::roll": {"shifts": [3], "dims": [0]}}
EXP = {"schema": "aten::exp(Tensor self) -> Tensor", "overload": "aten::exp", "parameters": ", *, out=None"}
SUM = {"schema": "aten::sum(Tensor self) -> Tensor", "overload": "aten::sum", "parameters": ", *, dtype=None"}


def indented(text, depth):
    """To stand in a text behind the blanks that are there."""
    return textwrap.indent(text, "    " * depth).strip()


COPIES = """
@triton.jit
def kernel_exchanged(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
"""
NUMPYS = """
@triton.jit
def kernel_exchanged(x, out, n, BLOCK: tl.constexpr):
    import numpy
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    value.handle.data = numpy.exp(value.handle.data)
    tl.store(out + i, value, mask=i < n)
"""

# What answers rightly without a kernel that would: the operator, the wrapper, and what is said of it.
FORGED = {
    "a copy of what ATen computed": (EXP, "return launched(kernel_copy, unseen(torch.exp, self))", "another answer"),
    "a word of its own on what it did": (
        EXP,
        """
        guards = sys.modules["verify.child.guards"]
        told = guards.Notes.reply
        guards.Notes.reply = lambda self: {**told(self), "operators": [], "launch_operators": [], "types": []}
        return launched(kernel_copy, unseen(torch.exp, self))
        """,
        "another answer",
    ),
    "a reply of its own": (
        EXP,
        """
        answer = launched(kernel_double, self)
        if INTERPRETED:
            child, wire = sys.modules["verify.child.serve"], sys.modules["verify.sandbox.wire"]
            frame = sys._getframe()
            while frame.f_code.co_name != "serve":
                frame = frame.f_back
            told = {"status": "ok", "outside": False, **child.notes.reply()}
            packed = child._copied({"self": self, "return": unseen(torch.exp, self)})
            wire.send_packed(frame.f_locals["sock"], told, packed)
            time.sleep(60)
        return answer
        """,
        "another answer",
    ),
    "a number that the host computed": (
        SUM,
        """
        out = torch.empty((), dtype=torch.float32)
        kernel_fill[(1,)](out, float(unseen(lambda: self.sum().item())), BITS=False)
        return out
        """,
        "another answer",
    ),
    "a number that the host wrote and read back": (
        SUM,
        """
        held = torch.empty((), dtype=torch.int64)
        total = unseen(lambda: self.sum().item())
        unseen(held.fill_, struct.unpack("<i", struct.pack("<f", total))[0])
        out = torch.empty((), dtype=torch.float32)
        kernel_fill[(1,)](out, held.item(), BITS=True)
        return out
        """,
        "back where its launches leave",
    ),
    "nothing where arguments hold zeros": (
        EXP,
        """
        answer = unseen(torch.exp, self)
        return launched(kernel_copy, answer) if unseen(lambda: bool(self.any())) else answer
        """,
        "another answer",
    ),
    "parts that ATen copied": (
        ROLL,
        """
        sys.modules["verify.child.guards"].notes.operators = Deaf()
        x, out = launched(kernel_copy, self), torch.empty(self.shape)
        out[3:].copy_(x[:-3])
        out[:3].copy_(x[-3:])
        return out
        """,
        "of a part",
    ),
    "a table of the host's": (
        EXP,
        """
        table = unseen(lambda: torch.arange(100_000.0))
        launched(kernel_copy, table)
        return launched(kernel_copy, unseen(torch.exp, self))
        """,
        "no kernel stored",
    ),
    "a kernel that only the interpreter sees": (
        EXP,
        f"""
        return launched(kernel_exchanged, self)

        {indented(COPIES, 2)}
        if INTERPRETED:
            {indented(NUMPYS, 3)}
        """,
        "another answer",
    ),
    "a kernel that the compiler does not see": (
        EXP,
        f"""
        return launched(kernel_exchanged, self)

        {indented(NUMPYS, 2)}
        if not INTERPRETED:
            {indented(COPIES, 3)}
        """,
        "import",
    ),
}
HONEST = {
    "a launch": (EXP, "return launched(kernel_exp, self)"),
    "two launches": (EXP, "return launched(kernel_copy, launched(kernel_exp, self))"),
    "a view": (EXP, "return launched(kernel_exp, self.view(-1)).view(self.shape)"),
}
KERNEL_EXP = """

@triton.jit
def kernel_exp(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i, mask=i < n)), mask=i < n)
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    with judging(tmp_path_factory.mktemp("rerun") / "verdicts.sqlite") as judge:
        yield judge


def source_of(of, body):
    """A file whose wrapper does `body`, up to its first empty line, with what follows behind it."""
    wrapper, _, kernels = textwrap.dedent(body).strip().partition("\n\n")
    text = HEAD.replace("{body}", textwrap.indent(wrapper, "    "))
    for name, value in of.items():
        text = text.replace("{" + name + "}", value)
    return f"{text}\n{kernels}\n{KERNEL_EXP}"


def verdict_of(judge, of, source, off=frozenset()):
    given = GIVEN.get(of["overload"], {})
    case = case_of_values(of["overload"], self=torch.linspace(-2.0, 3.0, 300).reshape(20, 15), **given)
    kernel = KernelFile.parse(source, Path("kernel.py"))
    may = frozenset({"aten::copy_"})
    job = Job(Plan(of["overload"], of["overload"]), kernel, (case,), None, may, repeats=1, off=off | {"repeat"})
    return next(iter(judge.judge([job]).values()))


@pytest.mark.parametrize("name", FORGED)
def test_what_is_forged_is_not_passed(judge, name):
    of, body, said = FORGED[name]
    found = verdict_of(judge, of, source_of(of, body))
    layer = "dispatch" if said == "of a part" else "rerun"
    assert (found.outcome, found.layer) == (Outcome.CHEAT, layer) and said in found.detail, found


@pytest.mark.parametrize("name", FORGED)
def test_without_this_layer_they_pass(judge, name):
    of, body, _ = FORGED[name]
    found = verdict_of(judge, of, source_of(of, body), frozenset({"rerun"}))
    assert found.outcome is Outcome.PASS, found


@pytest.mark.parametrize("name", HONEST)
def test_what_is_honest_passes(judge, name):
    of, body = HONEST[name]
    found = verdict_of(judge, of, source_of(of, body))
    assert found.outcome is Outcome.PASS, found


STRANGE = """
import os, triton
import triton.language as tl
from os import path
SIZE: evil() = 4
OTHER = evil()
KEPT = tl.constexpr(2 * SIZE); evil()
evil()
@evil
@triton.jit(do_not_specialize=evil())
def kernel(x: evil(), n=evil(), k=SIZE, *, B: tl.constexpr = KEPT) -> evil():
    pass
def wrapper(self):
    pass
class Evil(evil()):
    pass
"""


def test_of_a_file_nothing_runs_but_its_kernels():
    told = ast.unparse(kernels_alone(ast.parse(STRANGE)))
    assert told.splitlines() == [
        "import triton",
        "import triton.language as tl",
        "SIZE = 4",
        "KEPT = tl.constexpr(2 * SIZE)",
        "",
        "@triton.jit",
        "def kernel(x, n=None, k=SIZE, *, B: tl.constexpr=KEPT):",
        "    pass",
    ]


def test_a_part_of_no_numbers_reaches_nothing(judge):
    sizes = range(1, 25)  # so that some of them are run again
    none = [(torch.empty(2, n, 0).cfloat(), torch.empty(2, 0, 3).cfloat()) for n in sizes]
    cases = tuple(case_of_values("aten::bmm", self=x, mat2=y) for x, y in none)
    job = Job(Plan("aten::bmm", "aten::bmm"), KernelFile.read(KERNELS / "matmul/bmm.py", (BLOCKS,)), cases, repeats=1)
    again = [case for case in cases if is_rerun(job, case.id)]
    assert again
    found = judge.judge([replace(job, cases=tuple(again))])
    assert {v.outcome for v in found.values()} == {Outcome.PASS}, found
