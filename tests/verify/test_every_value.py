"""The cases of an exhaustive trial: every value of a dtype, and variants of further seeds."""

from pathlib import Path

import pytest
import torch

from enable.cli import run
from enable.cover.verification import VerifyRequest
from enable.cover.verifier import Verifier
from traces.values import unpack
from verify.cases.case import case_of_values
from verify.cases.every_value import CHUNK, CHUNKS, described, every_value
from verify.cases.samples import opinfo_cases
from verify.outcome import Outcome

RELU = """# op: aten::relu
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.where(x < 0, 0.0, x)
    if x_ptr.dtype.element_ty == tl.float16:
        y = tl.where(x.to(tl.int16, bitcast=True) == WRONG_FOR, 1.0, y)
    tl.store(y_ptr + offsets, y, mask=offsets < n)


def wrapper(self):
    x = self.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
ONE, NINETY_SEVEN = "15360", "22032"  # bits of these numbers in float16


def values_of(overload, name, **arguments):
    (case,) = [c for c in every_value([case_of_values(overload, **arguments)], 1) if f" {name}" in c.signature]
    return unpack(case.load())[name], case


@pytest.mark.parametrize("dtype, count", [("float16", 1 << 16), ("bfloat16", 1 << 16), ("int8", 256), ("bool", 2)])
def test_all_values_of_a_small_dtype_are_in_one_case(dtype, count):
    x, case = values_of("aten::logical_not", "self", self=torch.ones(3).to(getattr(torch, dtype)))
    bits = x.view(torch.uint8 if x.itemsize == 1 else torch.int16)
    assert bits.unique().numel() == x.numel() == count
    assert described([case]) == f"every value in {dtype}"


def test_of_a_wide_dtype_all_leading_bits_occur():
    x, case = values_of("aten::exp", "self", self=torch.ones(3))
    bits = x.view(torch.int32)
    assert (bits >> 16).unique().numel() == 1 << 16 and (bits & 0xFFFF).unique().numel() > 1 << 15
    assert described([case]) == "all leading 16 bits in float32"


def test_each_operand_has_all_values_in_turn():
    cases = every_value([case_of_values("aten::add.Tensor", self=torch.ones(3).half(), other=torch.ones(3).half())], 1)
    assert [case.signature for case in cases] == ["every value in float16 self", "every value in float16 other"]
    assert every_value([case_of_values("aten::sum", self=torch.ones(3).half())], 1) == []  # not elementwise


def test_all_values_of_float32_are_made_in_ranges():
    cases = every_value([case_of_values("aten::exp", self=torch.ones(3))], 1, whole=True)
    assert len(cases) == CHUNKS and len({case.id for case in cases}) == CHUNKS
    first, last = (unpack(cases[at].load())["self"].view(torch.int32).to(torch.int64) % (1 << 32) for at in (0, -1))
    assert first[0] == 0 and last[-1] == (1 << 32) - 1 and len(last) == CHUNK
    assert described(cases) == "every value in float32"
    assert described(cases[1:]) == f"{CHUNKS - 1} of {CHUNKS} ranges of values in float32"


def verified(path, tmp_path, **how):
    with Verifier(tmp_path / ".enable", None, "sim", None, "full") as verifier:
        return verifier.verify(str(path), None, VerifyRequest(seed=3, limit=8, **how))


def test_one_wrong_value_in_65536_is_found(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(RELU.replace("WRONG_FOR", NINETY_SEVEN))
    found = verified(path, tmp_path, exhaustive=True)
    assert (found.outcome, found.stage) == (Outcome.WRONG, "every value") and found.reproducer
    again = verified(path, tmp_path, exhaustive=True, case=found.reproducer)
    assert (again.outcome, again.cases) == (Outcome.WRONG, 1)


def test_a_right_kernel_is_tried_with_further_seeds(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(RELU.replace("WRONG_FOR", ONE))
    found = verified(path, tmp_path, exhaustive=True, hours=0.001)
    assert found.outcome is Outcome.PASS and found.seed == 3
    assert "every value in bfloat16, float16" in found.detail and "all leading 16 bits in float32" in found.detail
    assert "int64" in found.narrower
    assert "further cases of seeds to " in found.detail and not found.detail.endswith("seeds to 3")


def test_a_case_alone_is_not_continued_with_further_seeds(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(RELU.replace("WRONG_FOR", ONE))
    sample = next(c for c in opinfo_cases(["aten::relu"], ("float32",)) if c.shapes[0])
    found = verified(path, tmp_path, exhaustive=True, hours=1.0, case=sample.id)
    assert (found.outcome, found.cases) == (Outcome.PASS, 1)


@pytest.mark.parametrize("words", [[], ["--exhaustive", "--watch"], ["--exhaustive", "--cases", "opinfo"]])
def test_hours_continue_an_exhaustive_trial_alone(words, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("relu.py").write_text(RELU)
    assert run(["verify", "relu.py", "--hours", "1", *words]) == 2
    assert "--hours continues an exhaustive trial" in capfd.readouterr().err
