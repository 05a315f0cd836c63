"""Judge one tiny kernel: shows that children start, compile for the platform's targets, execute and are compared."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from verify import platforms
from verify.cases import case_of_values
from verify.derive import Plan
from verify.judge import Job, Judge
from verify.kernel_file import KernelFile
from verify.outcome import Outcome
from verify.verdicts import VerdictStore

KERNEL = '''\
"""aten::neg(Tensor self) -> Tensor

One flat grid over a contiguous tensor.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::neg",)
DTYPES = ("float32",)


@triton.jit
def kernel_neg(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, -tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(self):
    out = torch.empty_like(self)
    kernel_neg[(triton.cdiv(self.numel(), 64),)](self, out, self.numel(), BLOCK=64)
    return out
'''


def smoke(platform: str = "sim") -> str:
    """What was seen, in a line. Raises RuntimeError if the kernel is not judged PASS."""
    started = time.monotonic()
    case = case_of_values("aten::neg", self=torch.arange(100.0))
    kernel = KernelFile.parse(KERNEL, Path("neg.py"))
    with (
        tempfile.TemporaryDirectory() as directory,
        Judge(platforms.load(platform), VerdictStore(Path(directory) / "verdicts.sqlite"), workers=1) as judge,
    ):
        (verdict,) = judge.judge([Job(Plan("aten::neg", "aten::neg"), kernel, (case,))]).values()
    if verdict.outcome is not Outcome.PASS:
        raise RuntimeError(f"a kernel that is right was judged {verdict.outcome}: {verdict.detail}")
    return f"a kernel was compiled, executed and compared in {time.monotonic() - started:.1f} s"
