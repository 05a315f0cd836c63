"""Make a correct kernel faster on the shapes that a trace recorded (`enable tune`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from enable.cover.cost import Cost, cost_of, result_tensors
from enable.cover.session import Session
from enable.progress import say
from enable.refine.acceptance import Accepted
from enable.refine.refinement import Operator, Refinement
from generate.kernel_search.measurement import (
    CONFIRMING,
    Gain,
    KernelTimer,
    Measurement,
    TimedKernel,
    TimedShape,
    gain,
    text_digest,
)
from generate.kernel_search.search import Search, SearchEnd, SearchLimits, open_search
from generate.kernel_search.skills import Skill, SkillStore, Support, shape_class
from generate.llm import FREE, Options, Price, load_provider
from generate.machine import Event, EventKind, State
from generate.signatures import describe
from traces import UserError
from traces.overloads import call, resolve
from traces.program import program_name
from traces.records import CallRecord
from traces.values import numel, pack, unpack
from verify.cases.case import Case
from verify.operators import group
from verify.outcome import Outcome

SKILLS = "skills.jsonl"
TRIED = 3  # number of candidates, fastest first, that are timed anew for acceptance


@dataclass(frozen=True)
class TuneChoice:
    """The user's options.

    Attributes:
        times: File of recorded times to replay, or None to measure.
        command: The command that continues this run.
    """

    overload: str
    trace: str
    llm: str = "replay"
    options: Options = field(default_factory=Options)
    limits: SearchLimits = field(default_factory=SearchLimits)
    price: Price = FREE
    skills: bool = True
    model: bool = True
    times: Path | None = None
    few_cases: bool = False
    restart: bool = False
    command: str = field(default_factory=lambda: f"{program_name()} tune")


@dataclass(frozen=True)
class Tuned:
    """The result of tuning.

    Attributes:
        gain: Confirmed gain of the accepted candidate, or the best candidate's gain if none was accepted.
        kernel: Path of the accepted kernel.
    """

    overload: str
    exit: str
    why: str
    kernel: str | None = None
    gain: Gain | None = None
    before_us: float = 0.0
    after_us: float = 0.0
    candidates: int = 0
    used: dict[str, Any] = field(default_factory=dict)
    directory: str = ""
    shapes: int = 0


ACCEPTED, NOT_FASTER, WAITING, FAILED = "ACCEPTED", "NOT_FASTER", "WAITING", "FAILED"


@dataclass(frozen=True)
class TunedTrial:
    """The outcome for a candidate: the path of the kernel now in force, or the reason why it was refused."""

    gain: Gain
    measured: Measurement
    path: str = ""
    reason: str = ""


class TunedOperator:
    """The kernel in force, the shapes on which it is timed, and the way to replace it by a candidate."""

    def __init__(self, session: Session, choice: TuneChoice) -> None:
        """Prepare the operator; raise UserError if it has no correct kernel or no recorded shapes."""
        self.session, self.choice = session, choice
        self.refinement = Refinement(session, [choice.trace], few_cases=choice.few_cases)
        called = {s.overload for s in self.refinement.trace(choice.trace).signatures.values()}
        if choice.overload in called and choice.overload not in self.refinement.cases:
            raise UserError(
                f"trace {choice.trace}: holds no contents of any call of {choice.overload}, and kernels are judged on "
                f"these; record it anew: {session.workspace.command('capture', choice.trace, '--values', 'full')}"
            )
        self.operator: Operator = self.refinement.operator(choice.overload)
        kernel = self.operator.replaces
        if kernel is None:
            refine = session.refining(choice.trace, "--op", choice.overload, overloads=[choice.overload])
            raise UserError(f"{choice.overload}: has no kernel that could be made faster; have one written: {refine}")
        self.kernel = kernel
        self.shapes = tuple(self._shapes())
        self.task = self.refinement.task(self.operator, choice.command)
        if self.task.failing is not None:
            detail = self.task.failing.detail.partition("\n")[0]
            refine = session.refining(choice.trace, "--op", choice.overload, overloads=[choice.overload])
            raise UserError(f"{choice.overload}: its kernel is not right ({detail}); mend it first: {refine}")

    @property
    def home(self) -> Path:
        """Return the directory that holds this workspace's searches."""
        return self.session.workspace.root / "tune"

    def _shapes(self) -> list[TimedShape]:
        """Return one case per signature for all overloads that the kernel serves."""
        served = [o for o in self.refinement.cases if self._match(o) is not None]
        cases = {c.independence: c for o in served for c in self.refinement.cases[o]}
        trace = self.refinement.trace(self.choice.trace)
        records = {(r.overload, r.signature): r for r in trace.calls() if r.overload in served}
        shapes = [_shape(case, records.get((case.overload, case.signature))) for case in cases.values()]
        return [shape for shape in shapes if shape.elements]

    def _match(self, overload: str) -> Any:
        """Return the overload's match if this kernel serves it."""
        match = self.session.library.match(overload)
        return match if match is not None and match.kernel.path == self.kernel.path else None

    def timed_kernel(self, written: str) -> TimedKernel:
        """Return a source text as a kernel for a timer, in place of the kernel in force."""
        path = self.refinement.path(self.operator)
        library = self.session.library
        if written != self.kernel.written:
            library = library.with_candidate(library.parse(written, path))
        return TimedKernel(written, library.match)

    def time(self, timer: KernelTimer, texts: Sequence[str], rounds: int) -> Measurement:
        """Time kernel files; the first one is in force."""
        return timer([self.timed_kernel(text) for text in texts], self.shapes, rounds)

    def accept(self, timer: KernelTimer, source: str, provenance: dict[str, Any], learned: str) -> TunedTrial:
        """Time a candidate anew, judge it fully, and put it in force if it is faster and correct."""
        measured = self.time(timer, [self.kernel.written, source], CONFIRMING)
        measured_gain = gain(measured, 1)
        if measured_gain.refusal:
            return TunedTrial(measured_gain, measured, reason=measured_gain.refusal)
        trial = self.refinement.test(self.operator, source)
        failure = next((v for v in trial.verdicts if v.outcome is not Outcome.PASS), None)
        if failure is not None:
            return TunedTrial(measured_gain, measured, reason=f"{failure.outcome}: {failure.detail}")
        full_provenance = {**provenance, "tuned": self._provenance(measured, measured_gain)}
        accepted = self.refinement.accept(trial, full_provenance)
        if not isinstance(accepted, Accepted):
            return TunedTrial(measured_gain, measured, reason=accepted.reason)
        self._learn(source, measured, learned)
        return TunedTrial(measured_gain, measured, path=str(accepted.path))

    def _provenance(self, measured: Measurement, speedup: Gain) -> dict[str, Any]:
        """Return the measurement as it is kept beside the kernel."""
        shapes = {name: round(value, 4) for name, value in speedup.shapes.items()}
        return {"device": measured.device.name, "gain": speedup.mean, "noise": speedup.noise, "shapes": shapes}

    def _learn(self, source: str, measured: Measurement, text: str) -> None:
        """Keep the lesson with the measured times, if there is one."""
        if not text:
            return
        before, after = text_digest(self.kernel.written), text_digest(source)
        support = tuple(
            Support(
                shape.name,
                shape_class(shape.elements),
                round(measured.times[0][shape.name].median, 2),
                round(measured.times[1][shape.name].median, 2),
                len(measured.times[1][shape.name].gpu),
                before,
                after,
            )
            for shape in self.shapes
        )
        overload, target = self.operator.overload, measured.device.target
        self.store().add(Skill(text, family(overload), overload, target, support))

    def store(self) -> SkillStore:
        """Return the workspace's skill store."""
        return SkillStore(self.session.workspace.root / SKILLS)


def family(overload: str) -> str:
    """Return the operator's family, whose members behave alike on a GPU: a row of verify/operators.py, or `fused`."""
    return "fused" if overload.startswith("fused::") else group(overload)


def _shape(case: Case, record: CallRecord | None) -> TimedShape:
    """Return the timed shape for a case.

    `record` is the stored call. It is None for a subgraph, whose results are computed to learn their sizes.
    """
    packed = case.load()
    floats = [t.dtype for t in packed.tensors if "float" in t.dtype]
    if record is None:
        results = pack({"return": call(resolve(case.overload), unpack(packed))})
        cost = Cost(nbytes=float(sum(g.nbytes for g in (*packed.groups, *results.groups))))
        sizes = [numel(t) for t in results.tensors]
    else:
        cost, sizes = cost_of(record), [math.prod(t["shape"]) for t in result_tensors(record.results)]
    elements = max([numel(t) for t in packed.tensors] + sizes, default=0)
    name = f"{case.overload.partition('::')[2]}({describe(packed)})"
    return TimedShape(name, case, cost.nbytes, cost.flops, elements, floats[0] if floats else "float32")


def searched(
    tuning: TunedOperator, timer: KernelTimer, progress: Callable[[State, Event], None] | None = None
) -> Tuned:
    """Search with a language model, then accept the fastest candidate that passes."""
    choice, store = tuning.choice, tuning.store() if tuning.choice.skills else None
    classes = {shape_class(s.elements) for s in tuning.shapes}
    journal = open_search(tuning.home, tuning.task, tuning.shapes, choice.skills, choice.restart)
    try:
        search = Search(
            base=tuning.task,
            journal=journal,
            model=load_provider(choice.llm, choice.options),
            tester=lambda source: tuning.refinement.test(tuning.operator, source).verdicts,
            timer=lambda texts, rounds: tuning.time(timer, texts, rounds),
            shapes=tuning.shapes,
            limits=choice.limits,
            price=choice.price,
            on_event=progress or _progress_printer(tuning.operator.overload),
        )
        if not search.tree.nodes:
            search.time_root()
        target = search.measured[0].device.target
        search.skills = store.find(family(tuning.operator.overload), classes, target) if store else ()
        end = search.run()
        search.record()
        ended = _begun(tuning, search, end) if end.waiting or end.failed else _accepted(tuning, search, timer, end)
    finally:
        journal.close()
    return replace(ended, used=search.used, directory=str(journal.directory))


def _begun(tuning: TunedOperator, search: Search, end: SearchEnd) -> Tuned:
    """Return the result of a search that is to be continued."""
    why = f"{end.why if not end.waiting else end.waiting}, then run: {tuning.choice.command}"
    return Tuned(
        tuning.operator.overload,
        WAITING if end.waiting else FAILED,
        why,
        candidates=len(search.tree.nodes) - 1,
        shapes=len(tuning.shapes),
    )


def _accepted(tuning: TunedOperator, search: Search, timer: KernelTimer, end: SearchEnd) -> Tuned:
    """Return the result after trying the best candidates in order."""
    overload, count, why = tuning.operator.overload, len(search.tree.nodes) - 1, end.why
    last_gain: Gain | None = None
    provenance = {"journal": str(search.journal.directory), "model": search.model.name, **search.used}
    for node in (n for n in search.tree.best(TRIED) if n.number and not search.gain(n.number).refusal):
        trial = tuning.accept(timer, node.source or "", provenance, node.learned)
        if trial.path:
            return tuned(tuning, trial, why, count)
        last_gain = trial.gain
        say(f"{overload}  candidate {node.number} is not accepted: {trial.reason}")
        why = f"{end.why}; candidate {node.number}: {trial.reason}"
    best = search.tree.best()[0]
    last_gain = last_gain or (search.gain(best.number) if best.number else None)
    return Tuned(overload, NOT_FASTER, why, gain=last_gain, candidates=count, shapes=len(tuning.shapes))


def tuned(tuning: TunedOperator, trial: TunedTrial, why: str, count: int) -> Tuned:
    """Return the result for an accepted kernel."""
    before, after = (_geometric([t.median for t in trial.measured.times[k].values()]) for k in (0, 1))
    overload, shapes = tuning.operator.overload, len(tuning.shapes)
    return Tuned(overload, ACCEPTED, why, trial.path, trial.gain, before, after, count, shapes=shapes)


def _geometric(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _progress_printer(overload: str) -> Callable[[State, Event], None]:
    """Return a callback that prints the search's progress."""

    def tell(state: State, event: Event) -> None:
        message = {
            EventKind.ANSWERED: "the model answered",
            EventKind.LINT_REFUSED: "lint refuses it",
            EventKind.TEST_FAILED: event.outcome,
            EventKind.TEST_PASSED: "every case passes",
        }.get(event.kind)
        if message:
            say(f"{overload}  call {state.llm_calls}: {message}")

    return tell
