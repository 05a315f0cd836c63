"""Judge one tiny kernel as a self-test: start children, compile for the targets, execute and compare."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch

from verify import platforms
from verify.cases.case import case_of_values
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.judge import Job, Judge
from verify.judging.verdicts import VerdictStore
from verify.outcome import Outcome


def smoke(platform: str = "sim") -> str:
    """Judge the kernel and return a one-line summary; raise RuntimeError if the verdict is not PASS."""
    started = time.monotonic()
    case = case_of_values("aten::neg", self=torch.arange(1.0, 101.0))
    kernel = KernelFile.parse(KERNEL, Path("neg.py"))
    with (
        tempfile.TemporaryDirectory() as directory,
        Judge(platforms.load(platform), VerdictStore(Path(directory) / "verdicts.sqlite"), workers=1) as judge,
    ):
        (verdict,) = judge.judge([Job(Plan("aten::neg", "aten::neg"), kernel, (case,))]).values()
    if verdict.outcome is not Outcome.PASS:
        raise RuntimeError(f"a kernel that is right was judged {verdict.outcome}: {verdict.detail}")
    return f"a kernel was compiled, executed and compared in {time.monotonic() - started:.1f} s"
