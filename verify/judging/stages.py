"""What a trial is given, and what it returns (verify/judging/trial.py)."""

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
        name: What refusals call them, such as `shown`.
        first: Each overload's cases end at the first that fails.
        demanded: A case that the kernel does not serve, although ATen answers it, ends the trial.
    """

    name: str
    cases: Sequence[Case]
    first: bool = True
    demanded: bool = False


@dataclass(frozen=True)
class TrialOptions:
    """How far a trial goes.

    Attributes:
        seed: of the variants.
        samples: Judge OpInfo's samples.
        extended: Number of variants of each overload; 0 makes none, and searches for none.
        off: Layers of judging that are not asked.
        first: Each overload's cases end at the first that fails.
        draws: Judge kernels that draw random numbers on a long series of draws.
        case: Id of the only case that is judged.
        arrange: Puts the cases of an overload in the order in which they are judged.
    """

    seed: int = 0
    samples: bool = True
    extended: int = MAX_EXTENDED
    off: frozenset[str] = frozenset()
    first: bool = True
    draws: bool = False
    case: str | None = None
    arrange: Callable[[list[Case]], list[Case]] = list

    @property
    def full(self) -> bool:
        """Return True if every layer is asked, and not of single cases, so that the kernel as a whole is judged."""
        return not self.off - {"lint"} and self.case is None

    @property
    def whole(self) -> bool:
        """Return True if a pass stands for the kernel: nothing that a trial consists of is left out."""
        return self.full and "lint" not in self.off and self.samples and self.extended >= MAX_EXTENDED


@dataclass(frozen=True)
class TrialResult:
    """The result on one kernel: PASS only if cases ran and all of them passed.

    Attributes:
        layer, rule: The guard that found a failure, as in Verdict.
        cases: Number of cases that were judged; `skipped` are not counted.
        independent: Number of cases that the kernel is known to have passed and that differ in more than the contents
            of tensors; None if verdicts on it are not kept with those of the library.
        seed: Seed of the variants.
        reproducer: Id of the case that failed.
        compile_only: Cases were compiled, and none was run.
        narrower: Dtypes that ATen takes and a bare file does not, with what it does there.
        unreached: Lines that no case reached, in words.
        stage: Name of the stage that failed.
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
    """Is called as a trial proceeds, from the judge's threads; this one does nothing."""

    def stage(self, name: str, cases: int) -> None:
        """A stage of so many cases begins."""

    def verdict(self, overload: str) -> None:
        """One more case of an overload has a verdict."""
