"""Run one proposal's trial: all cases in a full trial, and a check that nothing else would break.

Cases are split before a dialog begins. The dialog's tester sees the shown cases and never the held-back ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from enable.cover.recorded import Recorded
from enable.cover.self_consistency import callable_overloads, kernels_of
from enable.cover.session import Session
from enable.naming import counted
from enable.refine.evidence import split
from generate import BLOCKS
from generate.kernel_library import Library
from traces.program import program_name
from verify.cases.case import Case, by_overload, has_reference
from verify.cases.opinfo import kept_cases
from verify.contract.kernel_file import KernelFile
from verify.judging.candidate import Candidate
from verify.judging.dialect import limited, violations
from verify.judging.job import Job
from verify.judging.stages import MAX_EXTENDED, TrialOptions, TrialResult, TrialStage
from verify.judging.standings import ENOUGH
from verify.judging.trial import REFUSED, KernelTrial
from verify.lint import load_profile
from verify.lint.profile import DEFAULT
from verify.outcome import LINT, UNREACHED, Outcome, Verdict

_LISTED = 8  # maximum number of cases that a line names
_HELD_BACK = "that were held back fail"
_REGRESSED = "that passed with the kernel in force fail"
_GONE = "no kernel would serve it"


@dataclass(frozen=True)
class Proposal:
    """A kernel file that is proposed for the library.

    Attributes:
        path: Path that the file gets in the library.
        source: The kernel file's source.
        shown, held_back: Recorded cases for every overload that the file may affect, as `split` returned them.
        serves: Overloads that the file has to list; if empty, any.
        self_consistent: True if it may call verified library kernels.
        few_cases: True if it may be accepted on fewer than ENOUGH independent cases.
        samples, extended: As in TrialOptions.
    """

    path: Path
    source: str
    shown: Sequence[Case]
    held_back: Sequence[Case] = ()
    serves: Sequence[str] = ()
    self_consistent: bool = False
    few_cases: bool = False
    samples: bool = True
    extended: int = MAX_EXTENDED


@dataclass(frozen=True)
class Refused:
    """A proposal's refusal. The old kernel is still in force.

    Attributes:
        reasons: Lines for the user.
        regressed, held_back: Ids for the failing cases.
        feedback: Text for the model. On held-back cases it gives only counts by outcome, and quotes the compiler.
        outcome: Outcome for the first case in the feedback.
        rule: As in Verdict.
    """

    reasons: tuple[str, ...]
    regressed: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    feedback: str = ""
    outcome: Outcome = Outcome.WRONG
    rule: str = ""

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)


@dataclass(frozen=True)
class LibraryChange:
    """A library, and the same library with a proposed kernel file.

    Attributes:
        kernel: The proposed kernel file.
        before: The library in force.
        after: The library with the proposal.
        overloads: Overloads whose verdicts may change.
    """

    kernel: KernelFile
    before: Library
    after: Library
    overloads: frozenset[str]

    def serves(self, overload: str) -> bool:
        """Return True if the proposed kernel would serve calls to the overload."""
        match = self.after.match(overload)
        return match is not None and match.kernel.path == self.kernel.path

    def concerns(self, overload: str) -> bool:
        """Return True if the proposal would change the kernel files that serve the overload."""
        before, after = self.before.match(overload), self.after.match(overload)
        return self.serves(overload) or kernels_of(before) != kernels_of(after)

    @property
    def basis(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Return the kernel files that serve each overload before and after; the decision depends on them."""
        return {o: (kernels_of(self.before.match(o)), kernels_of(self.after.match(o))) for o in self.overloads}


class ProposalTrial:
    """One proposal's trial, including its effects on other kernels.

    To save time, the kernel in force is judged only on cases that do not pass with the proposal.
    """

    def __init__(self, session: Session, proposal: Proposal, change: LibraryChange, recorded_cases: Recorded) -> None:
        self._session, self._proposal, self._change = session, proposal, change
        asked = {case.id for case in (*proposal.shown, *proposal.held_back)}
        self._recorded_cases = [case for case in recorded_cases.cases if case.id not in asked]
        self._hidden_ids = {case.id for case in (*proposal.held_back, *split(self._recorded_cases)[1])}
        self._profile = load_profile(session.platform.lint).with_blocks(BLOCKS)
        self._shown = sorted(self._served(proposal.shown), key=lambda c: c.overload != change.kernel.overloads[0])
        options = TrialOptions(
            samples=proposal.samples, extended=proposal.extended, draws=True, arrange=self._held_back_last
        )
        self._trial = KernelTrial(self._candidate(), self._serve, session.judge, session.workspace.cache, options)

    def refusal(self) -> Refused | None:
        """Run the trial, and return the refusal, or None if the proposal may come into force."""
        stages = [
            TrialStage("shown", self._shown, first=False, demanded=True),
            TrialStage("held back", self._served(self._proposal.held_back), demanded=True),
            TrialStage("recorded", self._served(self._recorded_cases)),
        ]
        result = self._trial.run(stages)
        if result.outcome is not Outcome.PASS:
            return self._failure(result)
        return self._regression() or self._too_few() or self._never_ran(result)

    @property
    def on_shown(self) -> tuple[Verdict, ...]:
        """Return the verdicts on the shown cases, without cases for which ATen has no reference result."""
        verdicts = [(c, self._trial.verdicts.get((c.overload, c.id))) for c in self._shown]
        return tuple(v for c, v in verdicts if v and (v.outcome is not Outcome.SKIPPED or has_reference(c)))

    @property
    def judged(self) -> int:
        """Return the verdict count."""
        return len(self._trial.verdicts)

    def few(self) -> dict[str, int]:
        """Count the independent passing cases by overload, for overloads with fewer than ENOUGH."""
        passed: dict[str, set[str]] = defaultdict(set)
        for overload, cases in self._trial.cases.items():
            verdicts = {case.id: self._trial.verdicts.get((overload, case.id)) for case in cases}
            passed[overload] = {c.independence for c in cases if (v := verdicts[c.id]) and v.outcome is Outcome.PASS}
        return {o: len(passed[o]) for o in sorted(passed) if len(passed[o]) < ENOUGH}

    def _served(self, cases: Sequence[Case]) -> list[Case]:
        """Return the cases that the proposal serves, without dtypes that the platform does not support."""
        absent = {*load_profile(DEFAULT).dtypes} - {*self._profile.dtypes}
        return [case for case in cases if self._change.serves(case.overload) and not absent.intersection(case.dtypes)]

    def _serve(self, overload: str) -> Job:
        """Return the job that serves an overload once the proposal is in the library."""
        match = self._change.after.match(overload)
        assert match is not None
        return match.job

    def _candidate(self) -> Candidate:
        """Return the proposal as a candidate for the trial, with its violations in the platform's dialect."""
        session, proposal, kernel = self._session, self._proposal, self._change.kernel
        profile = self._profile
        if proposal.self_consistent:
            calls = callable_overloads(session.workspace, self._change.before, session.platform, kernel.overloads)
            profile = profile.with_calls(calls)
        broken, kernel = tuple(violations(kernel, profile)), limited(kernel, profile)
        return Candidate(proposal.path.name, proposal.source, kernel, kernel.overloads, True, broken, profile)

    def _held_back_last(self, cases: list[Case]) -> list[Case]:
        """Move the cases that a model does not see to the end; one derived case in five joins them."""
        known = {case.id for case in self._recorded_cases}
        self._hidden_ids |= {case.id for case in split([case for case in cases if case.id not in known])[1]}
        return sorted(cases, key=lambda case: case.id in self._hidden_ids)

    def _failure(self, result: TrialResult) -> Refused:
        """Return the refusal for a trial that did not pass."""
        if result.violations:
            text = "\n".join(result.violations)
            return Refused((f"lint: {result.detail}",), feedback=text, outcome=result.outcome, rule=LINT)
        if result.outcome is Outcome.SKIPPED and not result.reproducer:
            reason = f"no recorded case is served by this kernel: {result.detail}"
            return Refused((reason,), feedback=result.detail, outcome=result.outcome)
        cases = [case for overload_cases in self._trial.cases.values() for case in overload_cases]
        verdicts = {c.id: v for c in cases if (v := self._trial.verdicts.get((c.overload, c.id)))}
        failed = {c: v for c, v in verdicts.items() if v.failed or c == result.reproducer}
        if not failed:  # the failing case is known from elsewhere and is not part of this trial
            return Refused((result.detail,), feedback=result.report or result.detail, outcome=result.outcome)
        regressed = self._regressed([case for case in cases if case.id in failed])
        elsewhere = {case.id for case in self._recorded_cases}
        held_back = tuple(c for c in failed if c in self._hidden_ids - elsewhere)
        shown = {case.id for case in self._shown}
        rest = [c for c in failed if c not in self._hidden_ids and c not in regressed]
        origin = "made of calls that ATen refuses" if result.stage == REFUSED else "made"
        reasons = (
            _line(regressed, _REGRESSED, failed),
            _line(held_back, _HELD_BACK, failed),
            _line([c for c in rest if c in shown], "that were shown fail", failed),
            _line([c for c in rest if c not in shown], f"that were {origin} fail", failed),
        )
        return self._refused(reasons, regressed, held_back, failed)

    def _refused(
        self, reasons: Sequence[str], regressed: Sequence[str], held_back: Sequence[str], failed: Mapping[str, Verdict]
    ) -> Refused:
        """Return a refusal whose feedback hides details on held-back cases."""
        visible = [v for c, v in failed.items() if c not in self._hidden_ids]
        hidden = [v for c, v in failed.items() if c in self._hidden_ids]
        feedback, outcome = _feedback(visible, hidden), (*visible, *hidden)[0].outcome
        return Refused(tuple(filter(None, reasons)), tuple(regressed), tuple(held_back), feedback, outcome)

    def _regression(self) -> Refused | None:
        """Return a refusal if a case passes with the library in force and would not pass with the proposal."""
        change, proposal = self._change, self._proposal
        recorded_cases = (*proposal.shown, *proposal.held_back, *self._recorded_cases)
        elsewhere = [c for c in recorded_cases if change.concerns(c.overload) and not change.serves(c.overload)]
        verdicts = self._judge(elsewhere, change.after)
        unserved = [c for c in self._served(self._recorded_cases) if self._is_skipped(c)] + self._in_lost_dtypes()
        outcomes = {
            c.id: verdicts.get(c.id, Verdict(c.id, Outcome.SKIPPED, self._gone(c))) for c in (*unserved, *elsewhere)
        }
        failed = {c: v for c, v in outcomes.items() if v.outcome is not Outcome.PASS}
        regressed = self._regressed([case for case in (*unserved, *elsewhere) if case.id in failed])
        if not regressed:
            return None
        failed = {c: failed[c] for c in regressed}
        return self._refused([_line(regressed, _REGRESSED, failed)], regressed, (), failed)

    def _gone(self, case: Case) -> str:
        """Return why no kernel would serve a case."""
        lost = [dtype for dtype in case.dtypes if dtype not in self._change.kernel.dtypes]
        verdict = self._trial.verdicts.get((case.overload, case.id))
        reason = verdict.detail if verdict else f"the file's DTYPES do not list {', '.join(lost)}" if lost else ""
        return f"{_GONE}: {reason}" if reason else _GONE

    def _is_skipped(self, case: Case) -> bool:
        """Return True if the trial skipped the case."""
        return self._trial.verdicts[case.overload, case.id].outcome is Outcome.SKIPPED

    def _in_lost_dtypes(self) -> list[Case]:
        """Return OpInfo samples in dtypes that the replaced kernel lists and the proposal does not."""
        samples: list[Case] = []
        for overload in self._change.kernel.overloads if self._proposal.samples else ():
            replaced = self._change.before.kernel(overload)
            lost = set(replaced.dtypes) - set(self._change.kernel.dtypes) if replaced is not None else ()
            samples += kept_cases(self._session.workspace.cache, [overload], tuple(sorted(lost))) if lost else []
        return samples

    def _regressed(self, cases: Sequence[Case]) -> list[str]:
        """Return the ids for cases that pass with the library in force."""
        before = self._judge(cases, self._change.before)
        return [c.id for c in cases if c.id in before and before[c.id].outcome is Outcome.PASS]

    def _judge(self, cases: Sequence[Case], library: Library) -> dict[str, Verdict]:
        """Return verdicts by case id; cases that the library does not serve have no entry."""
        matches = {overload: (library.match(overload), group) for overload, group in by_overload(cases).items()}
        jobs = [replace(match.job, cases=tuple(group)) for match, group in matches.values() if match is not None]
        return {case: verdict for (_, case), verdict in self._session.judge.judge(jobs).items()}

    def _too_few(self) -> Refused | None:
        """Return a refusal if an overload has fewer than ENOUGH independent passing cases."""
        missing = {} if self._proposal.few_cases else self.few()
        reasons = tuple(too_few(overload, count) for overload, count in missing.items())
        return Refused(reasons, feedback="\n".join(reasons)) if reasons else None

    def _never_ran(self, result: TrialResult) -> Refused | None:
        """Return a refusal if no case reaches some lines in the kernel."""
        if not result.unreached:
            return None
        lines = "; ".join(result.unreached)
        feedback = f"No call was found that ATen answers and for which this is of use: {lines}."
        reason = f"no case reaches all of {self._proposal.path.name}: {lines}"
        return Refused((reason,), feedback=feedback, rule=UNREACHED)


def too_few(overload: str, count: int) -> str:
    """Return the error line for an overload with too few independent cases."""
    return (
        f"{overload}: {count} independent case{'s' * (count != 1)}, and a kernel is accepted on {ENOUGH}; record more "
        f"calls of it ({program_name()} capture), or accept it on these with --few-cases"
    )


def _line(cases: Collection[str], predicate: str, failed: Mapping[str, Verdict]) -> str:
    """Return a line on failing cases, with the reason of the first unless it is held back; '' if there are none."""
    if not cases:
        return ""
    listed = ", ".join(f"{c} {failed[c].outcome}" for c in list(cases)[:_LISTED])
    more = f" and {len(cases) - _LISTED} more" if len(cases) > _LISTED else ""
    detail = next((failed[c].detail for c in cases if failed[c].detail), "").split("\n")[0]
    reason = f": {detail}" if detail and predicate != _HELD_BACK else ""
    return f"{counted(len(cases), 'case')} {predicate}: {listed}{more}{reason}"


def _feedback(seen: Sequence[Verdict], unseen: Sequence[Verdict]) -> str:
    """Return the feedback for the model: the first visible failure, and held-back failure counts by outcome.

    A compiler error on a held-back case is quoted, because it is about the model's own source.
    """
    lines = [first.report or first.detail for first in seen[:1]]
    if unseen:
        counts = Counter(str(verdict.outcome) for verdict in unseen)
        listed = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
        sentence = f"Calls that are not shown here fail{' too' if seen else ''}: {listed}."
        lines.append(f"{sentence} Serve every input that the schema allows.")
        lines += [v.detail for v in unseen if v.outcome is Outcome.COMPILE_ERROR][:1]
    return "\n\n".join(lines)
