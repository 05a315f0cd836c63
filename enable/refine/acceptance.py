"""Whether a candidate may replace a kernel of the library: no regression, held-back cases, and every guard.

Cases are split before a dialog begins: its tester sees those that are shown, and never the others. What is decided here
rests on verdicts alone, so that it can be tried without a model.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enable.cover.recorded import Recorded, recorded
from enable.cover.self_consistency import broken_calls, callable_overloads, kernels_of
from enable.cover.session import Session
from enable.cover.verification import SEARCHED, SEARCHES
from enable.refine.evidence import HELD_BACK, MAX_EXTENDED, MAX_OPINFO, few, further, split
from generate.library import Library, Match
from generate.versions import Versions
from traces import UserError
from verify.cases.case import Case, NoReference, by_overload, reference
from verify.cases.refused import refused
from verify.contract.kernel_file import KernelFile
from verify.judging.job import REPEATS, Job
from verify.judging.random_judging import exhaustive
from verify.judging.unreached import unreached
from verify.judging.verdicts import ENOUGH, judge_version
from verify.lint import lint, load_profile, render
from verify.outcome import LINT, UNREACHED, Outcome, Verdict

_LISTED = 8  # cases that a line names
_SHOWN, _MADE, _REFUSED = "shown", "made where few were recorded", "made of calls that ATen refuses"
_Key = tuple[str, str]  # overload, id of a case


@dataclass(frozen=True)
class Proposal:
    """A kernel that its dialog's tester passed. path: where it goes; shown, held_back: as `split` gave them, of every
    recorded overload that it may touch. provenance: what the caller knows (traces, task, journal, model).
    self_consistent: it may call verified kernels of the library. few_cases: it may be accepted on fewer than ENOUGH
    independent cases.
    """

    path: Path
    source: str
    shown: Sequence[Case]
    held_back: Sequence[Case]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    self_consistent: bool = False
    opinfo: int = MAX_OPINFO
    extended: int = MAX_EXTENDED
    few_cases: bool = False


@dataclass(frozen=True)
class Accepted:
    """The kernel is in force. version: its number in the history of `path`."""

    path: Path
    version: int
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """The old kernel is in force still. reasons: a line each, for the user; regressed, held_back: ids of the cases.

    feedback: the same for a model, which is told nothing of held-back cases but how many fail and how, and what the
    compiler says. outcome: of the first case that feedback tells of. rule: as in Verdict.
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


def accept(session: Session, proposal: Proposal) -> Accepted | Refused:
    """Judge the proposal against the library in force, and put it in force if nothing speaks against it.

    Judging is done without a lock: if another kernel that matters here was accepted meanwhile, it is judged again,
    mostly from verdicts that are kept. Raises what the judge raises, such as TraceError.
    """
    versions = Versions(session.workspace.kernels)
    while True:
        change = _decided(session, proposal)
        if isinstance(change, Refused):
            return change
        with versions.locked():
            now = _change(session, proposal)
            if isinstance(now, Refused) or now.basis() != change.basis():
                continue
            provenance = {**proposal.provenance, **_facts(session, proposal, change)}
            group, name = proposal.path.parent.name, proposal.path.stem
            number = versions.put(group, name, proposal.source, provenance)
        session.reload_library()
        return Accepted(versions.path(group, name), number, provenance)


def check(session: Session, proposal: Proposal) -> Refused | None:
    """Why `accept` would refuse the proposal as things stand; None if it would not."""
    found = _decided(session, proposal)
    return found if isinstance(found, Refused) else None


def _decided(session: Session, proposal: Proposal) -> _Change | Refused:
    change = _change(session, proposal)
    if isinstance(change, Refused):
        return change
    trial = _Trial(session, proposal, change)
    return trial.refusal() or replace(change, few=trial.few())


def roll_back(session: Session, group: str, name: str, to: int | None = None) -> int:
    """Put an earlier version of a kernel in force, by default the one before; 0 is the base library's kernel.

    Returns the number of the version that this makes. Raises UserError for an unknown number, and for a version with
    which kernels would call each other in a cycle or call what no kernel serves.
    """
    versions = Versions(session.workspace.kernels)
    with versions.locked():
        before, path = session.reload_library(), versions.path(group, name)
        to = versions.before(group, name) if to is None else to
        source = versions.source(group, name, to)
        after = before.replacing(path, session.library.parse(source, path) if source is not None else None)
        broken = broken_calls(before, after)
        if broken:
            raise UserError(f"version {to} of {group}/{name} cannot be put in force: {broken}; roll those back first")
        number = versions.roll_back(group, name, to)
    session.reload_library()
    return number


@dataclass(frozen=True)
class _Change:
    """The library in force, and what it would be with the proposal. overloads: of all cases that are asked.

    others: recorded cases that are neither shown nor held back, of which those that passed have to pass. few: how many
    independent cases speak for it, by overload of which these are fewer than ENOUGH.
    """

    kernel: KernelFile
    before: Library
    after: Library
    overloads: frozenset[str]
    others: Recorded
    few: Mapping[str, int] = field(default_factory=dict)

    def serves(self, overload: str) -> bool:
        """Whether calls of it would come to the proposed kernel."""
        match = self.after.match(overload)
        return match is not None and match.kernel.path == self.kernel.path

    def concerns(self, overload: str) -> bool:
        """Whether the verdicts of its cases may change."""
        return self.serves(overload) or kernels_of(self.before.match(overload)) != kernels_of(
            self.after.match(overload)
        )

    def basis(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """What a decision rests on: the kernels that serve each overload, before and after."""
        return {o: (kernels_of(self.before.match(o)), kernels_of(self.after.match(o))) for o in self.overloads}


def _change(session: Session, proposal: Proposal) -> _Change | Refused:
    """Refused: the text is no kernel file of the dialect, or does not fit into the library."""
    before = session.reload_library()
    try:
        kernel = before.parse(proposal.source, proposal.path)
        after = before.replacing(proposal.path, kernel)
    except UserError as error:
        return Refused((str(error),), feedback=str(error))
    profile = load_profile(session.platform.lint)
    if proposal.self_consistent:
        may = callable_overloads(session.workspace, before, session.platform, kernel.overloads)
        profile = profile.with_calls(may)
    violations = lint(proposal.source, profile)
    if violations:
        return Refused((f"lint: {violations[0]}",), feedback=render(violations), rule=LINT)
    broken = broken_calls(before, after)
    if broken:
        return Refused((broken,), feedback=broken)
    others = recorded(session.workspace)
    cases = (*proposal.shown, *proposal.held_back, *others.cases)
    return _Change(kernel, before, after, frozenset({*kernel.overloads, *(c.overload for c in cases)}), others)


def _facts(session: Session, proposal: Proposal, change: _Change) -> dict[str, Any]:
    """What acceptance itself adds to the provenance."""
    held = Counter(case.overload for case in proposal.held_back)
    served = sorted({c.overload for c in proposal.shown if change.serves(c.overload)})
    none = [overload for overload in served if not held[overload]]
    replaced = next((k for k in map(change.before.kernel, change.kernel.overloads) if k is not None), None)
    return {
        "judge": judge_version(session.platform),
        "platform": session.platform.name,
        "sandbox": session.judge.sandbox,
        "self_consistent": proposal.self_consistent,
        "calls": list(change.kernel.calls),
        "replaces": replaced.key if replaced is not None else None,
        "cases": {"shown": len(proposal.shown), "held_back": len(proposal.held_back)},
        "traces_asked": list(change.others.traces),
        "traces_unread": dict(change.others.unread),
        "nothing_held_back": {o: f"fewer than {HELD_BACK} cases" for o in none},
        "few_cases": dict(change.few),
    }


class _Trial:
    """The verdicts on one change. The kernel in force is only judged on the cases that fail with the new one."""

    def __init__(self, session: Session, proposal: Proposal, change: _Change) -> None:
        self._session = session
        self._proposal = proposal
        self._change = change
        asked = {case.id for case in (*proposal.shown, *proposal.held_back)}
        self._others = [case for case in change.others.cases if case.id not in asked]
        self._held = {case.id for case in (*proposal.held_back, *split(self._others)[1])}
        self._passed: dict[str, set[str]] = defaultdict(set)  # by overload, what the cases that pass are called apart
        self._reached: set[str] = set()  # of the proposed kernel, by cases that pass

    def refusal(self) -> Refused | None:
        """Why the change is refused, by the dialog's cases or by all that must not regress; None if it is not."""
        dialog = [*self._proposal.shown, *self._proposal.held_back]
        own = [case for case in dialog if self._change.concerns(case.overload)]
        served = [case for case in own if self._change.serves(case.overload)]
        if not served:
            return Refused(("no recorded case is served by this kernel",))
        asked = {case.overload for case in served}
        thin = few([case for case in (*served, *self._others) if case.overload in asked])
        made = self._further(thin)
        self._held |= {case.id for case in split(made)[1]}
        others = [c for c in self._others if self._change.concerns(c.overload) and self._had_kernel(c.overload)]
        return (
            self._refusal(own, _SHOWN)
            or self._refusal(made, _MADE)
            or self._refusal([*others, *self._further(self._replaced() - thin)], "")
            or self._too_few()
            or self._never_ran(asked)
            or self._where_aten_refuses(asked)
            or self._refusal(exhaustive(self._further(asked)), _MADE)
        )

    def few(self) -> dict[str, int]:
        """How many independent cases passed, of the overloads of which these are fewer than ENOUGH."""
        served = {c.overload for c in self._proposal.shown if self._change.serves(c.overload)}
        return {o: len(self._passed[o]) for o in sorted(served) if len(self._passed[o]) < ENOUGH}

    def _too_few(self) -> Refused | None:
        lacking = {} if self._proposal.few_cases else self.few()
        reasons = tuple(too_few(overload, count) for overload, count in lacking.items())
        return Refused(reasons, feedback="\n".join(reasons)) if reasons else None

    def _never_ran(self, overloads: Collection[str]) -> Refused | None:
        """Refused is what no case reaches; before that more cases of these overloads are made, which have to pass."""
        for search in range(SEARCHES):
            if not self._unreached():
                return None
            failing = self._refusal(self._further(overloads, search), _MADE)
            if failing is not None:
                return failing
        missing = self._unreached()
        if not missing:
            return None
        told = "; ".join(missing)
        feedback = f"No call was found that ATen answers and for which this is of use: {told}."
        reason = f"no case reaches all of {self._proposal.path.name}: {told}"
        return Refused((reason,), feedback=feedback, rule=UNREACHED)

    def _where_aten_refuses(self, overloads: Collection[str]) -> Refused | None:
        """What ATen refuses a kernel may answer, without foreign memory."""
        given = by_overload(self._further(overloads))
        return self._refusal([c for o in overloads for c in refused(given.get(o, []))], _REFUSED)

    def _unreached(self) -> tuple[str, ...]:
        return unreached(self._change.kernel, self._reached) if any(self._reached) else ()

    def _had_kernel(self, overload: str) -> bool:
        return self._change.before.match(overload) is not None

    def _replaced(self) -> set[str]:
        """The overloads of the file that another kernel serves so far."""
        kernels = {o: self._change.before.kernel(o) for o in self._change.kernel.overloads}
        return {o for o, kernel in kernels.items() if kernel and kernel.key != self._change.kernel.key}

    def _refusal(self, cases: Sequence[Case], demanded: str) -> Refused | None:
        """demanded: what the cases are called of which those that the proposal serves have to pass, whether they did
        before or not; nothing, if those have to that did. Of cases that were made it need not list the dtypes."""
        failed = self._failing(cases)
        before = self._judge([c for c in cases if c.id in failed], self._change.before, repeats=0)
        regressed = [c for c in failed if c in before and before[c].outcome is Outcome.PASS]
        own = {c.id for c in cases if demanded and self._change.serves(c.overload)}
        if demanded == _MADE:
            own -= {c for c, verdict in failed.items() if verdict.outcome is Outcome.SKIPPED}
        held = [c for c in failed if c in self._held and c in own]
        shown = [c for c in failed if c in own and c not in held and c not in regressed]
        reasons = [
            _told(regressed, "that passed with the kernel in force fail", failed),
            _told(held, "that were held back fail", failed),
            _told(shown, f"that were {demanded} fail", failed),
        ]
        if not any(reasons):
            return None
        seen = [failed[c] for c in (*regressed, *shown) if c not in self._held]
        unseen = [failed[c] for c in dict.fromkeys((*regressed, *held)) if c in self._held]
        told, outcome = _feedback(seen, unseen), (*seen, *unseen)[0].outcome
        return Refused(tuple(filter(None, reasons)), tuple(regressed), tuple(held), told, outcome)

    def _failing(self, cases: Sequence[Case]) -> dict[str, Verdict]:
        """By case id, what does not pass with the change, but for cases of which ATen itself has no answer."""
        verdicts = self._judge(cases, self._change.after, REPEATS)
        failed = {}
        for case in cases:
            gone = Verdict(case.id, Outcome.SKIPPED, "no kernel would serve it")
            verdict = verdicts.get(case.id, gone)
            if verdict.outcome is Outcome.PASS:
                self._passed[case.overload].add(case.independence)
                self._reached |= {verdict.reached} if self._change.serves(case.overload) else set()
            skipped = verdict.outcome is Outcome.SKIPPED
            if verdict.outcome is not Outcome.PASS and not (skipped and not _has_reference(case)):
                failed[case.id] = verdict
        return failed

    def _judge(self, cases: Sequence[Case], library: Library, repeats: int) -> dict[str, Verdict]:
        """Verdicts by case id, with every layer asked; none of a case that the library does not serve."""
        groups = by_overload(cases)
        matches = {overload: library.match(overload) for overload in groups}
        jobs = [_job(m, groups[o], repeats) for o, m in matches.items() if m is not None]
        return {case: verdict for (_, case), verdict in self._session.judge.judge(jobs).items()}

    def _further(self, overloads: Collection[str], search: int | None = None) -> list[Case]:
        """Of each overload cases of OpInfo, and some made from these and from shown ones. search: which of those by
        which a case is looked for that reaches more."""
        most, found = (self._proposal.opinfo, self._proposal.extended), []
        if search is not None and most[1]:
            most = (most[0], most[1] + (SEARCHED << search))
        cache = self._session.workspace.cache
        for overload in sorted(overloads):
            kernel = self._change.before.kernel(overload) or self._change.kernel
            shown = [c for c in self._proposal.shown if c.overload == overload]
            found += further(cache, overload, shown, kernel.dtypes, self._proposal.source, most)
        recorded = {case.id for case in (*self._proposal.shown, *self._proposal.held_back, *self._others)}
        return [case for case in found if case.id not in recorded]


def too_few(overload: str, count: int) -> str:
    """The line for an overload of which so few independent cases speak."""
    return (
        f"{overload}: {count} independent case{'s' * (count != 1)}, and a kernel is accepted on {ENOUGH}; record more "
        "calls of it (enable capture), or accept it on these with --few-cases"
    )


def _job(match: Match, cases: Sequence[Case], repeats: int) -> Job:
    return Job(match.plan, match.kernel, tuple(cases), match.copy, repeats=repeats)


def _has_reference(case: Case) -> bool:
    try:
        reference(case)
    except NoReference:
        return False
    return True


def _told(cases: Sequence[str], what: str, failed: Mapping[str, Verdict]) -> str:
    """A line on cases that speak against the change; '' if there are none."""
    if not cases:
        return ""
    listed = ", ".join(f"{c} {failed[c].outcome}" for c in cases[:_LISTED])
    more = f" and {len(cases) - _LISTED} more" if len(cases) > _LISTED else ""
    return f"{len(cases)} cases {what}: {listed}{more}"


def _feedback(seen: Sequence[Verdict], unseen: Sequence[Verdict]) -> str:
    """What a model may be told: the first case that is not held back; of held-back ones how many, and what the compiler
    says, which is of the model's own source."""
    lines = [first.report or first.detail for first in seen[:1]]
    if unseen:
        counts = Counter(str(verdict.outcome) for verdict in unseen)
        told = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
        what = f"Calls that are not shown here fail{' too' if seen else ''}: {told}."
        lines.append(f"{what} Serve every input that the schema allows.")
        lines += [v.detail for v in unseen if v.outcome is Outcome.COMPILE_ERROR][:1]
    return "\n\n".join(lines)
