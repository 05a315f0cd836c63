"""Check a platform's file: read it, compile and run a kernel there, and lint the library against its dialect."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from enable.tables import table
from enable.workspace import Workspace
from generate.kernel_library import Library
from traces import UserError
from verify import platforms
from verify.cases.case import case_of_values
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.dialect import first_outside
from verify.judging.job import RUN, Job
from verify.judging.judge import Judge
from verify.judging.verdicts import VerdictStore
from verify.lint import load_profile
from verify.lint.profile import DEFAULT
from verify.outcome import Outcome, Verdict
from verify.platforms import Platform, Target


@dataclass(frozen=True)
class CheckStep:
    """One check; `ok` is False if it failed."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class PlatformCheck:
    """The result of all checks; `refused` holds the first violation in each kernel file outside the dialect."""

    platform: Platform
    steps: tuple[CheckStep, ...]
    kernels: int
    refused: dict[str, str]

    @property
    def passed(self) -> bool:
        """Return True if every check succeeded."""
        return all(step.ok for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable platform check --json` prints."""
        return {
            "platform": self.platform.name,
            "typed": self.platform.typed,
            "description": self.platform.description,
            "passed": self.passed,
            "steps": [vars(step) for step in self.steps],
            "library": {"kernels": self.kernels, "in_the_dialect": self.kernels - len(self.refused)},
            "refused": self.refused,
        }


def check(name: str, library: Callable[[Platform], Library]) -> PlatformCheck:
    """Try everything that the platform's profile states. Raise UserError if the file is invalid."""
    platform = platforms.load(name)
    profile = load_profile(platform.lint)
    dialect = CheckStep(
        "dialect", True, f"{profile.name}: dtypes {', '.join(profile.dtypes)}{_rules(platform, profile)}"
    )
    targets = [_compiled(platform, target) for target in platform.targets]
    kernels = list(library(platform))
    outside = {k: first_outside(k, platform) for k in kernels} if platform.lint != DEFAULT else {}
    refused = {str(Path(*k.path.parts[-2:])): str(v) for k, v in outside.items() if v is not None}
    return PlatformCheck(platform, (dialect, *targets, _executed(platform)), len(kernels), refused)


def _rules(platform: Platform, profile: Any) -> str:
    """Return the dialect's rules as text."""
    rules = [*sorted(profile.forbidden), *([f"alignment {platform.alignment} bytes"] if platform.alignment else [])]
    return f"; {', '.join(rules)}" if rules else ""


def _compiled(platform: Platform, target: Target) -> CheckStep:
    """Check that a kernel compiles for a target."""
    name = f"target {target.backend} {target.arch}"
    return _tried(name, replace(platform, targets=(target,)), frozenset({RUN}), "compiles")


def _executed(platform: Platform) -> CheckStep:
    """Check that a kernel runs and computes the right result."""
    location = f"on the {platform.device} device" if platform.device else "by Triton's interpreter on host memory"
    return _tried("execution", platform, frozenset(), f"compiles, runs {location} and gives what ATen does")


def _tried(name: str, platform: Platform, off: frozenset[str], done: str) -> CheckStep:
    """Judge one tiny kernel, whose inputs have the platform's alignment."""
    started = time.monotonic()
    try:
        verdict = _verdict(platform, off)
    except UserError as error:
        return CheckStep(name, False, str(error))
    if verdict.outcome is not Outcome.PASS:
        return CheckStep(name, False, f"{verdict.outcome}: {verdict.detail}")
    return CheckStep(name, True, f"a kernel {done} ({time.monotonic() - started:.1f} s)")


def _verdict(platform: Platform, off: frozenset[str]) -> Verdict:
    """Return the verdict on the tiny kernel."""
    import torch

    case = case_of_values("aten::neg", self=torch.arange(128.0))
    job = Job(Plan("aten::neg", "aten::neg"), KernelFile.parse(KERNEL, Path("neg.py")), (case,), off=off)
    with (
        tempfile.TemporaryDirectory() as directory,
        Judge(platform, VerdictStore(Path(directory) / "verdicts.sqlite"), workers=1) as judge,
    ):
        (verdict,) = judge.judge([job]).values()
    return verdict


def lines(result: PlatformCheck, workspace: Workspace) -> str:
    """Return the checks, the number of library kernels in the dialect, and the next command."""
    platform = result.platform
    text = [f"{platform.name}: {platform.description}"]
    text += [f"  {'ok  ' if step.ok else 'FAIL'}  {step.name:16}  {step.detail}" for step in result.steps]
    within = result.kernels - len(result.refused)
    text.append(f"        {'library':16}  {within} of {result.kernels} kernel files are of the dialect")
    if result.refused:
        text += [
            "",
            table([{"kernel": kernel, "not of the dialect": why} for kernel, why in result.refused.items()]),
            "",
        ]
    if result.passed:
        traces = workspace.trace_names()
        record = "" if traces else f"{workspace.command('capture', 'nanogpt', '--device', 'sim')} && "
        covered = workspace.command("coverage", *(traces or ["nanogpt"])[:1], "--platform", platform.typed)
        text.append(f"  next  {record}{covered}")
    return "\n".join(text)


def listed() -> list[dict[str, str]]:
    """Return the toolkit's platforms."""
    loaded = [platforms.load(name) for name in platforms.names()]
    return [{"platform": p.name, "what": p.description, "dialect": p.lint} for p in loaded]
