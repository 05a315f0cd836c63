"""Whether a candidate may replace a kernel of the library: no regression, held-back cases, and every guard.

Cases are split before a dialog begins: its tester sees those that are shown, and never the others. What is decided here
rests on verdicts alone, so that it can be tried without a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from blake3 import blake3

from enable.recorded import Recorded, recorded
from enable.self_consistency import broken_calls, callable_overloads, kernels_of
from enable.session import Session
from generate.library import Library, Match
from generate.versions import Versions
from traces import UserError
from verify.cases import Case, NoReference, by_overload, reference
from verify.extended import extended
from verify.job import REPEATS, Job
from verify.kernel_file import KernelFile
from verify.lint import lint, load_profile, render
from verify.outcome import Outcome, Verdict
from verify.samples import opinfo_cases
from verify.verdicts import judge_version

HELD_BACK = 5  # one case in so many of an overload is held back; of fewer cases none is
MAX_OPINFO = 64  # OpInfo's cases of an overload that must not regress, spread evenly over its samples
MAX_EXTENDED = 32  # cases made from these and from the recorded ones
_LISTED = 8  # cases that a line names
_Key = tuple[str, str]  # overload, id of a case


@dataclass(frozen=True)
class Proposal:
    """A kernel that its dialog's tester passed. path: where it goes; shown, held_back: as `split` gave them, of every
    recorded overload that it may touch. provenance: what the caller knows (traces, task, journal, model).
    self_consistent: it may call verified kernels of the library.
    """

    path: Path
    source: str
    shown: Sequence[Case]
    held_back: Sequence[Case]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    self_consistent: bool = False
    opinfo: int = MAX_OPINFO
    extended: int = MAX_EXTENDED


@dataclass(frozen=True)
class Accepted:
    """The kernel is in force. version: its number in the history of `path`."""

    path: Path
    version: int
    provenance: Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """The old kernel is in force still. reasons: a line each, for the user; regressed, held_back: ids of the cases.

    feedback: the same for a model, which is told nothing of held-back cases but how many fail and how.
    """

    reasons: tuple[str, ...]
    regressed: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    feedback: str = ""

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)


def split(cases: Sequence[Case], show: Collection[str] = ()) -> tuple[list[Case], list[Case]]:
    """(shown, held back): of each overload with at least HELD_BACK cases about one signature in HELD_BACK, by its hash.

    Which half a case falls into hardly depends on the others, so that a trace recorded later hides nothing that was
    shown. show: ids that are not held back whatever their hash says.
    """
    held: set[str] = set()
    for group in by_overload(cases).values():
        ranked = sorted(group, key=_rank) if len(group) >= HELD_BACK else []
        chosen = [case for case in ranked if _rank(case) % HELD_BACK == 0] or ranked[:1]
        held |= {case.id for case in chosen[: len(group) // 2]}
    held -= set(show)
    return [c for c in cases if c.id not in held], [c for c in cases if c.id in held]


def _rank(case: Case) -> int:
    return int.from_bytes(blake3(f"held back {case.signature or case.id}".encode()).digest(8))


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
    return change if isinstance(change, Refused) else _Trial(session, proposal, change).refusal() or change


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
        after = before.replacing(path, KernelFile.parse(source, path) if source is not None else None)
        broken = broken_calls(before, after)
        if broken:
            raise UserError(f"version {to} of {group}/{name} cannot be put in force: {broken}; roll those back first")
        number = versions.roll_back(group, name, to)
    session.reload_library()
    return number


@dataclass(frozen=True)
class _Change:
    """The library in force, and what it would be with the proposal. overloads: of all cases that are asked.

    others: recorded cases that are neither shown nor held back, of which those that passed have to pass.
    """

    kernel: KernelFile
    before: Library
    after: Library
    overloads: frozenset[str]
    others: Recorded

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
        kernel = KernelFile.parse(proposal.source, proposal.path)
        after = before.replacing(proposal.path, kernel)
    except UserError as error:
        return Refused((str(error),), feedback=str(error))
    profile = load_profile(session.platform.lint)
    if proposal.self_consistent:
        may = callable_overloads(session.workspace, before, session.platform, kernel.overloads)
        profile = profile.with_calls(may)
    violations = lint(proposal.source, profile)
    if violations:
        return Refused((f"lint: {violations[0]}",), feedback=render(violations))
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
        "judge": judge_version(),
        "platform": session.platform.name,
        "sandbox": session.judge.sandbox,
        "self_consistent": proposal.self_consistent,
        "calls": list(change.kernel.calls),
        "replaces": replaced.sha256 if replaced is not None else None,
        "cases": {"shown": len(proposal.shown), "held_back": len(proposal.held_back)},
        "traces_asked": list(change.others.traces),
        "traces_unread": dict(change.others.unread),
        "nothing_held_back": {o: f"fewer than {HELD_BACK} cases" for o in none},
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

    def refusal(self) -> Refused | None:
        """Why the change is refused, by the dialog's cases or by all that must not regress; None if it is not."""
        dialog = [*self._proposal.shown, *self._proposal.held_back]
        own = [case for case in dialog if self._change.concerns(case.overload)]
        if not any(self._change.serves(case.overload) for case in own):
            return Refused(("no recorded case is served by this kernel",))
        others = [c for c in self._others if self._change.concerns(c.overload) and self._had_kernel(c)]
        return self._refusal(own, demanded=True) or self._refusal([*others, *self._further(own)], demanded=False)

    def _had_kernel(self, case: Case) -> bool:
        return self._change.before.match(case.overload) is not None

    def _refusal(self, cases: Sequence[Case], demanded: bool) -> Refused | None:
        """demanded: of these cases, those that the proposal serves have to pass, whether they did before or not."""
        failed = self._failing(cases)
        before = self._judge([c for c in cases if c.id in failed], self._change.before, repeats=0)
        regressed = [c for c in failed if c in before and before[c].outcome is Outcome.PASS]
        own = {c.id for c in cases if demanded and self._change.serves(c.overload)}
        held = [c for c in failed if c in self._held and c in own]
        shown = [c for c in failed if c in own and c not in held and c not in regressed]
        reasons = [
            _told(regressed, "that passed with the kernel in force fail", failed),
            _told(held, "that were held back fail", failed),
            _told(shown, "that were shown fail", failed),
        ]
        if not any(reasons):
            return None
        seen = [failed[c] for c in (*regressed, *shown) if c not in self._held]
        unseen = [failed[c] for c in dict.fromkeys((*regressed, *held)) if c in self._held]
        return Refused(tuple(filter(None, reasons)), tuple(regressed), tuple(held), _feedback(seen, unseen))

    def _failing(self, cases: Sequence[Case]) -> dict[str, Verdict]:
        """By case id, what does not pass with the change, but for cases of which ATen itself has no answer."""
        verdicts = self._judge(cases, self._change.after, REPEATS)
        failed = {}
        for case in cases:
            gone = Verdict(case.id, Outcome.SKIPPED, "no kernel would serve it")
            verdict = verdicts.get(case.id, gone)
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

    def _further(self, recorded: Sequence[Case]) -> Iterator[Case]:
        """Cases of OpInfo, and some made from these and from shown ones, of overloads that have a kernel already."""
        known = {case.id for case in recorded}
        for overload in self._change.kernel.overloads:
            kernel = self._change.before.kernel(overload)
            if kernel is None or kernel.sha256 == self._change.kernel.sha256:
                continue
            samples = _samples(overload, kernel.dtypes) if self._proposal.opinfo else ()
            chosen = samples[:: max(1, -(-len(samples) // max(1, self._proposal.opinfo)))]
            given = [*chosen, *(c for c in self._proposal.shown if c.overload == overload)]
            most = self._proposal.extended
            made = extended(given, 0, self._proposal.source, most) if most and given else []
            for case in (*chosen, *(v.case for v in made)):
                if case.id not in known:
                    yield case


@lru_cache(maxsize=8)
def _samples(overload: str, dtypes: tuple[str, ...]) -> Sequence[Case]:
    return opinfo_cases([overload], dtypes)


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
    """What a model may be told: the first case that is not held back; of held-back ones only how many."""
    lines = [first.report or first.detail for first in seen[:1]]
    if unseen:
        counts = Counter(str(verdict.outcome) for verdict in unseen)
        told = ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
        lines.append(
            f"Recorded calls that are not shown here fail too: {told}. Serve every input that the schema allows."
        )
    return "\n\n".join(lines)
