"""Check a platform's file: read it, compile and run a kernel there, and lint the library against its dialect."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from enable.naming import counted
from enable.progress import track
from enable.tables import table
from enable.workspace import Workspace
from generate.kernel_library import Library
from traces import UserError
from verify import platforms
from verify.cases.case import case_of_values
from verify.child.probe import KERNEL
from verify.contract.derive import Plan
from verify.contract.kernel_file import KernelFile
from verify.judging.dialect import outside, refused_file
from verify.judging.job import RUN, Job
from verify.judging.judge import Judge
from verify.judging.verdicts import VerdictStore
from verify.limits import describe
from verify.linking import written
from verify.lint import Violation, load_profile
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
class DialectLack:
    """Something that a dialect lacks and kernel files of the library use.

    Attributes:
        lacks: The name or the rule.
        overloads: Number of overloads of these files.
        files: Number of kernel files.
        first: The first place, as FILE:LINE.
        instead: What to write instead.
    """

    lacks: str
    overloads: int
    files: int
    first: str
    instead: str


@dataclass(frozen=True)
class PlatformCheck:
    """The result of all checks.

    Attributes:
        platform: The platform.
        steps: The checks.
        kernels: Number of kernel files in the library; 0 if a check failed, because then they are not read.
        outside: The first violation in each file that uses what the dialect lacks. Only the calls that compile it fail.
        refused: The files among these that are refused for every call.
        lacks: What the dialect lacks, most overloads first.
    """

    platform: Platform
    steps: tuple[CheckStep, ...]
    kernels: int
    outside: dict[str, str]
    refused: tuple[str, ...]
    lacks: tuple[DialectLack, ...]

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
            "library": {"kernels": self.kernels, "in_the_dialect": self.kernels - len(self.outside)},
            "lacks": [vars(lack) for lack in self.lacks],
            "outside": self.outside,
            "refused": self.refused,
        }


def check(name: str, library: Callable[[Platform], Library], on_step: Callable[[CheckStep], None]) -> PlatformCheck:
    """Try everything that the platform's profile states. Raise UserError if the file is invalid.

    Args:
        name: Platform name, or path to a file.
        library: Returns the library for a platform.
        on_step: Called with each check when it has ended.
    """
    platform = platforms.load(name)
    profile = load_profile(platform.lint)
    detail = f"{profile.name}: dtypes {', '.join(profile.dtypes)}{_rules(platform, profile)}"
    tries: list[Callable[[], CheckStep]] = [lambda: CheckStep("dialect", True, detail)]
    if limits := describe(platform.limits):
        tries.append(lambda: CheckStep("limits", True, ", ".join(limits)))
    if platform.device and platforms.is_file(platform.typed):
        tries.append(partial(_brought_up, platform))
    tries += [
        *(partial(_compiled, platform, target) for target in platform.targets),
        partial(_executed, platform),
    ]
    steps = []
    for attempt in tries:
        steps.append(attempt())
        on_step(steps[-1])
    kernels = list(library(platform)) if all(step.ok for step in steps) else []
    broken: dict[KernelFile, tuple[Violation, ...]] = {}
    for kernel in track(kernels, len(kernels), f"platform check {platform.name}: dialect"):
        broken |= {kernel: violations} if platform.lint != DEFAULT and (violations := outside(kernel, platform)) else {}
    refused = tuple(_name(kernel) for kernel in broken if refused_file(kernel, platform))
    first = {_name(kernel): str(violations[0]) for kernel, violations in broken.items()}
    return PlatformCheck(platform, tuple(steps), len(kernels), first, refused, tuple(_lacks(broken)))


def _name(kernel: KernelFile) -> str:
    """Return a kernel file's path in the library."""
    return str(Path(*kernel.path.parts[-2:]))


def _lacks(broken: Mapping[KernelFile, tuple[Violation, ...]]) -> list[DialectLack]:
    """Group violations by what the dialect lacks."""
    users: dict[str, dict[KernelFile, Violation]] = defaultdict(dict)
    for kernel, violations in broken.items():
        for violation in violations:
            users[violation.named or violation.rule].setdefault(kernel, violation)
    lacks = []
    for name, by_kernel in users.items():
        kernel, violation = next(iter(by_kernel.items()))
        block, line = written(kernel.source, violation.linked_line)
        overloads = sum(len(kernel.overloads) for kernel in by_kernel)
        lacks.append(
            DialectLack(name, overloads, len(by_kernel), f"{block or _name(kernel)}:{line}", violation.instead)
        )
    return sorted(lacks, key=lambda lack: (-lack.overloads, lack.lacks))


def _rules(platform: Platform, profile: Any) -> str:
    """Return the dialect's rules as text."""
    rules = [*sorted(profile.forbidden), *([f"alignment {platform.alignment} bytes"] if platform.alignment else [])]
    return f"; {', '.join(rules)}" if rules else ""


def _brought_up(platform: Platform) -> CheckStep:
    """Check that the module provides the device."""
    if not platform.module:
        missing = "no module: kernels are judged, but capture, run and enablekit.use need one, such as torch_mychip"
        return CheckStep("device", True, f"{platform.device}, {missing}")
    try:
        platform.bring_up()
    except UserError as error:
        return CheckStep("device", False, str(error))
    return CheckStep("device", True, f"{platform.module} provides {platform.device}")


def _compiled(platform: Platform, target: Target) -> CheckStep:
    """Check that a kernel compiles for a target."""
    name = f"target {target.backend} {target.arch}"
    return _tried(name, replace(platform, targets=(target,)), frozenset({RUN}), "compiles")


def _executed(platform: Platform) -> CheckStep:
    """Check that a kernel runs and computes the right result."""
    location = f"on the {platform.device} device" if platform.run_device else "by Triton's interpreter on host memory"
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


def head(platform: Platform) -> str:
    """Return the first line for a platform."""
    return f"{platform.name}: {platform.description}"


def step_line(step: CheckStep) -> str:
    """Return the line for one check."""
    return f"  {'ok  ' if step.ok else 'FAIL'}  {step.name:16}  {step.detail}"


def library_lines(result: PlatformCheck, workspace: Workspace) -> str:
    """Return what the library loses to the dialect, and the next command."""
    platform = result.platform
    if not result.passed:
        return "        the library is not checked before these work"
    within = result.kernels - len(result.outside)
    text = [f"        {'library':16}  {within} of {result.kernels} kernel files use nothing that the dialect lacks"]
    if result.outside:
        calls = len(result.outside) - len(result.refused)
        text += [
            f"        {'':16}  {counted(calls, 'file')} lose only the calls that compile it; coverage judges each call",
            f"        {'':16}  {counted(len(result.refused), 'file')} lose every call",
            "",
            table([vars(lack) for lack in result.lacks], optional=("files", "instead")),
            "",
        ]
    traces, device = workspace.trace_names(), platform.device if platform.module else "sim"
    record = "" if traces else f"{workspace.command('capture', 'nanogpt', '--device', device)} && "
    covered = workspace.command("coverage", *(traces or ["nanogpt"])[:1], "--platform", platform.typed)
    text.append(f"  next  {record}{covered}")
    return "\n".join(text)


def listed() -> list[dict[str, str]]:
    """Return the toolkit's platforms."""
    loaded = [platforms.load(name) for name in platforms.names()]
    return [{"platform": p.name, "what": p.description, "dialect": p.lint} for p in loaded]
