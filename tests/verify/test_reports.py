"""Reports of wrong kernels, as a prompt shows them: each kernel has one fault, and its report must name it."""

from pathlib import Path

import pytest
import torch
from sources import NEG

from traces.values import pack
from verify.cases.case import case_of_values
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.excerpts import anonymous, cut_log, snippet
from verify.judging.judge import Job
from verify.judging.reports import inputs_report
from verify.outcome import Outcome

STORE = "tl.store(y_ptr + i, -x, mask=mask)"
X = torch.arange(1.0, 241.0).reshape(12, 20)
INT = (torch.arange(240) % 199).reshape(12, 20)

WRONG = {  # what the kernel stores, and what the report must say of it
    "sign": ("tl.store(y_ptr + i, x, mask=mask)", "the negative of what is expected"),
    "factor": ("tl.store(y_ptr + i, x * -2.5, mask=mask)", "2.5 times what is expected"),
    "summand": ("tl.store(y_ptr + i, 7 - x, mask=mask)", "what is expected + 7"),
    "zeros": ("tl.store(y_ptr + i, x * 0, mask=mask)", "0 where another value is expected"),
    "constant": ("tl.store(y_ptr + i, x * 0 + 3, mask=mask)", "all of them 3"),
    "nan": ("tl.store(y_ptr + i, x / 0 - x / 0, mask=mask)", "NaN where a number is expected"),
    "infinity": ("tl.store(y_ptr + i, x / 0, mask=mask)", "infinity where a finite number is expected"),
    "shifted": (
        "tl.store(y_ptr + i, -tl.load(x_ptr + i + 1, mask=i + 1 < n, other=0.0), mask=mask)",
        "flat index i holds what belongs to flat index i + 1",
    ),
    "rows shifted": (
        "tl.store(y_ptr + i, -tl.load(x_ptr + (i + 220) % n, mask=mask), mask=mask)",
        "index i of dimension 0 holds what belongs to index i - 1",
    ),
    "transposed": (
        "tl.store(y_ptr + i, -tl.load(x_ptr + i % 12 * 20 + i // 12, mask=mask), mask=mask)",
        "the right values in the order of the result with dimensions 0 and 1 swapped",
    ),
    "reversed": (
        "tl.store(y_ptr + i, -tl.load(x_ptr + n - 1 - i, mask=mask), mask=mask)",
        "the right values in another order",
    ),
    "precision": ("tl.store(y_ptr + i, -x - tl.sin(x) * 0.5, mask=mask)", "a matter of precision"),
    "tail": ("tl.store(y_ptr + i, -x, mask=mask & (i < 128))", "from flat index 128 on"),
    "never stored": ("tl.store(y_ptr + i, -x, mask=mask & (i < 128))", "never stored: they hold what fresh memory"),
    "last row": ("tl.store(y_ptr + i, -x, mask=mask & (i < 220))", "only at index 11 of dimension 0 (the last)"),
    "column": ("tl.store(y_ptr + i, tl.where(i % 20 == 3, x, -x), mask=mask)", "only at index 3 of dimension 1"),
    "columns": ("tl.store(y_ptr + i, tl.where(i % 20 > 14, x, -x), mask=mask)", "from index 15 of dimension 1 on"),
    "odd columns": (
        "tl.store(y_ptr + i, tl.where((i % 2 == 1) & (i > 40), x, -x), mask=mask)",
        "only at indices 1, 3, 5, ... of dimension 1",
    ),
    "first block": ("tl.store(y_ptr + i, tl.where(i < 64, x, -x), mask=mask)", "up to flat index 63"),
}


@pytest.fixture
def judged(judge):
    """A function that judges a kernel file on the simulator."""

    def verdict(source, overload="aten::neg", repeats=0, **arguments):
        kernel = KernelFile.parse(source, Path("k.py"))
        case = case_of_values(overload, **(arguments or {"self": X}))
        job = Job(Plan(overload, overload), kernel, (case,), repeats=repeats)
        return next(iter(judge.judge([job]).values()))

    return verdict


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_told_how_it_is_wrong(judged, name):
    body, phrase = WRONG[name]
    verdict = judged(NEG.replace(STORE, body))
    assert verdict.outcome is Outcome.WRONG and verdict.layer == "compare"
    assert phrase in verdict.report.split("\n")[0] and phrase in verdict.detail
    assert "worst elements (index: got, expected):" in verdict.report
    assert "self: shape [12, 20] float32, min 1, max 240, mean 120.5, stride [20, 1]" in verdict.report
    assert len(verdict.report) < 1500, "never a whole tensor"


def test_the_line_of_an_access_outside_is_shown(judged):
    verdict = judged(NEG.replace(STORE, STORE.replace("mask=mask", "mask=i <= n")))
    assert (verdict.outcome, verdict.layer, verdict.rule) == (Outcome.WRONG, "access", "bounds")
    text = "outside y_ptr, which has bytes 0 to 960: at byte 960 (element 240) (kernel_neg, line 18, program (3, 0, 0))"
    assert text in verdict.report
    assert "  >   18 |     tl.store(y_ptr + i, -x, mask=i <= n)" in verdict.report


def test_a_misaligned_access_is_shown(judged):
    body = "tl.store((y_ptr.to(tl.int64) + 4 * i + 2).to(tl.pointer_type(tl.float32)), -x, mask=mask & (i < n - 1))"
    verdict = judged(NEG.replace(STORE, body))
    assert "store at byte 2 of y_ptr, not aligned to 4 bytes (kernel_neg, line 18, program (0, 0, 0))" in verdict.report
    assert f"  >   18 |     {body}" in verdict.report


def test_new_contents_with_which_a_kernel_fails_are_shown(judged):
    """An identity, which is right for positive numbers, as those of the case are."""
    source = NEG.replace("aten::neg", "aten::abs").replace(STORE, STORE.replace("-x", "x"))
    verdict = judged(source, "aten::abs", repeats=1)
    assert (verdict.layer, verdict.rule) == ("repeat", "contents"), verdict
    assert (
        "with the new contents with which it fails:\n  self: shape [12, 20] float32, min -240, max -1" in verdict.report
    )
    assert "float32, min 1, max 240" not in verdict.report


def test_what_is_not_run_is_told_with_its_dtypes(judged):
    verdict = judged(NEG.replace('("float32",)', '("float16",)'))
    assert (verdict.outcome, verdict.dtypes) == (Outcome.SKIPPED, "float32")
    verdict = judged(NEG, "aten::_standard_gamma", self=X)  # drawn by a law that is not known
    assert (verdict.outcome, verdict.dtypes) == (Outcome.SKIPPED, "float32")


def test_an_address_of_no_argument_is_not_printed(judged):
    verdict = judged(NEG.replace(STORE, STORE.replace("y_ptr + i", "y_ptr + (i.to(tl.int64) << 52)")))
    assert "at an address that belongs to no argument" in verdict.report and "0x" not in verdict.report


def test_a_compilers_message_has_its_line_of_the_file(judged):
    verdict = judged(NEG.replace(STORE, "tl.store(y_ptr + i, tl.negate(x), mask=mask)"))
    assert verdict.outcome is Outcome.COMPILE_ERROR
    assert verdict.detail.startswith("CompilationError: at line 18, column 24: AttributeError(")
    assert "    tl.store(y_ptr + i, tl.negate(x), mask=mask)\n                        ^\n" in verdict.report


def test_an_error_in_a_helper_is_told_with_caller_and_message(judged):
    helper = "\n\n@triton.jit\ndef helper(x):\n    return -x.foo\n"
    source = NEG.replace("\n\ndef wrapper", f"{helper}\ndef wrapper")
    verdict = judged(source.replace(STORE, "tl.store(y_ptr + i, helper(x), mask=mask)"))
    assert "CompilationError: at line 18, column 24:" in verdict.report
    assert "CompilationError: at line 23, column 12:" in verdict.report and "no attribute 'foo'" in verdict.detail


def test_the_assemblers_log_has_nothing_of_the_machine(judged):
    asm = "tl.inline_asm_elementwise('bogus.f32 $0, $1;', '=r,r', [x], dtype=tl.float32, is_pure=True, pack=1)"
    verdict = judged(NEG.replace(STORE, f"tl.store(y_ptr + i, {asm}, mask=mask)"))
    assert "Not a name of any known instruction: 'bogus'" in verdict.report
    assert "/" not in verdict.report and "Repro command" not in verdict.report


AMINMAX = '''"""aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)

One program.
"""
import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::aminmax",)
DTYPES = ("float32",)


@triton.jit
def kernel(x_ptr, a_ptr, b_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=MISSING)
    tl.store(a_ptr, tl.min(x, 0))
    tl.store(b_ptr, tl.max(x, 0))


def wrapper(self, *, dim=None, keepdim=False):
    a, b = torch.empty((), dtype=self.dtype), torch.empty((), dtype=self.dtype)
    kernel[(1,)](self, a, b, self.numel(), BLOCK=256)
    return a, b
'''


def test_of_several_results_it_is_said_which_are_wrong(judged):
    arguments = {"self": X, "dim": None, "keepdim": False}
    first = judged(AMINMAX.replace("MISSING", "0.0"), "aten::aminmax", **arguments)
    assert first.detail.startswith("return[0]: 1 of 1 elements wrong")
    assert "\n  return[1] is right\n" in first.report
    both = judged(AMINMAX.replace("MISSING", "0.0").replace("(b_ptr, ", "(b_ptr, 1 + "), "aten::aminmax", **arguments)
    assert "\n  return[1] is wrong too: 1 of 1 elements\n" in both.report


def test_arguments_tell_their_layout_and_small_ones_their_values():
    big = torch.ones(6, 8)
    text = inputs_report(
        pack({"a": big.t(), "b": big[:, ::2], "c": big[:, :1].expand(6, 4), "i": torch.tensor([3, 0, 7]), "s": 0.5})
    )
    assert "a: shape [8, 6] float32" in text and "stride [1, 8] (dense, dimensions permuted)" in text
    assert "stride [8, 2] (with gaps)" in text and "stride [8, 0] (expanded: elements share memory)" in text
    assert "i: shape [3] int64, 3 distinct values, min 0, max 7" in text and "stride [1], values 3, 0, 7" in text
    assert "  s = 0.5" in text and text.count("values 1") == 0


def test_what_was_not_recorded_is_not_summarised():
    packed = pack({"out": torch.zeros(3)}, write_only=frozenset({"out"}))
    assert "out: shape [3] float32, contents unknown, stride [1]" in inputs_report(packed)


def test_excerpts():
    assert snippet("a\nb\nc\nd", 1) == "  >    1 | a\n       2 | b\n       3 | c"
    assert snippet("a", 2) == snippet("", 1) == ""
    assert anonymous("/usr/lib/x.py:3: at 0x7f00aa11 in tmpab_12xyz.ptx") == "x.py:3: at 0x... in tmp.ptx"
    assert anonymous("(n)/2/k + a/b/c + x / y // z") == "(n)/2/k + a/b/c + x / y // z"
    assert cut_log("a" * 50 + "b" * 50, 20) == "a" * 10 + "\n[... 80 characters left out ...]\n" + "b" * 10
