"""Types for a trial's input and result (verify/judging/trial.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from verify.cases.case import Case
from verify.outcome import Outcome, Verdict

MAX_EXTENDED = 128  # variants of an overload's cases


@dataclass(frozen=True)
class TrialStage:
    """Cases that are judged together.

    Attributes:
        name: Name in messages, such as `shown`.
        cases: The cases.
        first: Stop each overload at its first failed case.
        demanded: End the trial if the kernel does not serve a case that ATen answers.
    """

    name: str
    cases: Sequence[Case]
    first: bool = True
    demanded: bool = False


@dataclass(frozen=True)
class TrialOptions:
    """Options that set how far a trial goes.

    Attributes:
        seed: Seed for the variants.
        samples: Judge OpInfo's samples.
        extended: Number of variants for each overload; 0 makes none, and does not search for cases.
        off: Judging layers that are switched off.
        first: Stop each overload at its first failed case.
        draws: Judge kernels that draw random numbers on a long series.
        values: Judge elementwise overloads on every value of small dtypes, on a device of float32, too.
        seconds: After a pass, continue with new variants for this long.
        case: Id for the only case to judge.
        arrange: Function that sorts an overload's cases into judging order.
    """

    seed: int = 0
    samples: bool = True
    extended: int = MAX_EXTENDED
    off: frozenset[str] = frozenset()
    first: bool = True
    draws: bool = False
    values: bool = False
    seconds: float = 0.0
    case: str | None = None
    arrange: Callable[[list[Case]], list[Case]] = list

    @property
    def full(self) -> bool:
        """Return True if the kernel as a whole is judged: every layer is on, and no single case is selected."""
        return not self.off - {"lint"} and self.case is None

    @property
    def whole(self) -> bool:
        """Return True if a pass accepts the kernel: no part of a trial is left out."""
        return self.full and "lint" not in self.off and self.samples and self.extended >= MAX_EXTENDED


@dataclass(frozen=True)
class TrialResult:
    """Result for one kernel; it is PASS only if cases ran and all of them passed.

    Attributes:
        name: File name.
        outcome: Trial outcome.
        layer: Guard that found a failure, as in Verdict.
        rule: The guard's rule.
        detail: One line.
        cases: How many cases were judged; `skipped` are not counted.
        passed: How many cases passed.
        skipped: How many cases were skipped.
        seed: Seed for the variants.
        sandbox: How the children were confined.
        overloads: Overloads that were judged.
        reproducer: Id for the case that failed.
        report: Evidence, as in Verdict.
        violations: Dialect violations.
        independent: How many passed cases differ in more than tensor contents, earlier trials included; None if
            verdicts on the kernel are not stored with those of the library.
        compile_only: Cases were compiled, and none was run.
        narrower: Dtypes that ATen takes and a bare file does not; the values describe its failure.
        unreached: Lines that no case reached, described in words.
        stage: Stage that failed.
    """

    name: str
    outcome: Outcome
    layer: str = ""
    rule: str = ""
    detail: str = ""
    cases: int = 0
    passed: int = 0
    skipped: int = 0
    seed: int = 0
    sandbox: str = ""
    overloads: tuple[str, ...] = ()
    reproducer: str = ""
    report: str = ""
    violations: tuple[str, ...] = ()
    independent: int | None = None
    compile_only: bool = False
    narrower: Mapping[str, str] = field(default_factory=dict)
    unreached: tuple[str, ...] = ()
    stage: str = ""

    def failing(self, failed: Verdict, stage: str) -> TrialResult:
        """Return the result with this failure."""
        return replace(
            self,
            outcome=failed.outcome,
            layer=failed.layer,
            rule=failed.rule,
            detail=failed.detail,
            report=failed.report,
            reproducer=failed.case,
            stage=stage,
        )


class Watcher:
    """Progress callbacks for a trial, called from the judge's threads; this class does nothing."""

    def stage(self, name: str, cases: int) -> None:
        """Handle a new stage with `cases` cases."""

    def verdict(self, overload: str) -> None:
        """Handle one more verdict on an overload's case."""
