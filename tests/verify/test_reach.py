"""What no case reaches of a kernel file is searched for, told with the verdict, and refused for the library."""

import pytest

from enable.cover.verification import VerifyRequest
from enable.cover.verifier import Verifier
from verify.contract.kernel_file import KernelFile
from verify.judging.unreached import unreached

KERNEL = """# op: aten::abs

@triton.jit
def kernel(x_ptr, o_ptr, n, TWICE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    if TWICE:
        x = x + x
    tl.store(o_ptr + i, tl.abs(x), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n == {size}:
        n = n + 0
    if x.dim() > 64:
        raise RuntimeError("ATen has no such tensors")
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o, n, TWICE={twice}, BLOCK=1024)
    return o
"""


@pytest.fixture(scope="module")
def verifier(tmp_path_factory):
    with Verifier(tmp_path_factory.mktemp("reach") / ".enable", None, "sim", "triton-cuda", "full") as found:
        yield found


def judged(verifier, tmp_path, size, twice, limit=24):
    path = tmp_path / "abs.py"
    path.write_text(KERNEL.format(size=size, twice=twice))
    return verifier.verify(str(path), None, VerifyRequest(seed=3, limit=limit))


def test_a_number_of_the_source_is_a_size_that_is_tried(verifier, tmp_path):
    found = judged(verifier, tmp_path, size=777, twice="n < 0")
    assert found.outcome == "PASS"
    assert found.unreached == ("line 8 never ran", "line 21: n < 0 was always False")
    assert "line 8 never ran" in found.detail


def test_what_is_wrong_for_one_size_alone_is_found(verifier, tmp_path):
    found = judged(verifier, tmp_path, size=5, twice="n == 777")
    assert (found.outcome, found.layer) == ("WRONG", "compare")


def test_what_no_case_reaches_is_told_with_the_pass(verifier, tmp_path):
    found = judged(verifier, tmp_path, size=12_345_678, twice="False")
    assert found.outcome == "PASS"
    told = ("line 8 never ran", "line 17 never ran", "line 16: n == 12345678 was always False")
    assert found.unreached == told


def test_lines_between_which_none_ran_are_one_span(tmp_path):
    source = KERNEL.format(size=3, twice="False").replace("# op: aten::abs", "import torch, triton")
    kernel = KernelFile.parse(f"{source}\nOVERLOADS = ('aten::abs',)\nDTYPES = ('float32',)\n", tmp_path / "abs.py")
    every = "5-9,13-18,20-22,16:7=True,16:7=False"
    assert unreached(kernel, [every]) == ()
    assert unreached(kernel, [every.replace("5-9", "5-6")]) == ("lines 7-9 never ran",)
    assert unreached(kernel, [every.replace(",16:7=False", "")]) == ("line 16: n == 3 was always True",)
