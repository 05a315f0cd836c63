"""What is refined, how a candidate is tested, and how an accepted kernel comes into the library."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from enable.cover.coverage import is_known, read_calls
from enable.cover.opinfo import Users
from enable.cover.self_consistency import callable_overloads
from enable.cover.session import Session
from enable.refine.acceptance import Accepted, TriedKernel, accept, try_kernel
from enable.refine.evidence import count_evidence, few, split
from enable.refine.proposal import Proposal, Refused, too_few
from enable.subgraphs import check_known, fused_cases
from generate.docs import documentation
from generate.signatures import describe
from generate.task import Task
from traces import UserError
from traces.overloads import resolve
from traces.records import CallRecord
from traces.store import Trace
from traces.subgraphs import is_subgraph
from traces.values import TensorRef
from verify.cases.case import Case, by_overload
from verify.comparison.laws import judged_by
from verify.contract.derive import functional_base
from verify.contract.kernel_file import KernelFile
from verify.debugging.cuda_debugger import debug_cuda
from verify.debugging.debugger import debug
from verify.judging.judge import Job
from verify.judging.standings import ENOUGH
from verify.outcome import Outcome, Verdict

SHOWN_CASES = 6  # recorded inputs that a first prompt lists
MOST_READ = 400  # among which these are chosen
_NEW_KERNELS = "refined"  # group of a kernel that replaces none


@dataclass(frozen=True)
class Operator:
    """One kernel file to write or mend. overload: the one it is named after; replaces: the file it goes before."""

    overload: str
    replaces: KernelFile | None

    @property
    def serves(self) -> tuple[str, ...]:
        """The overloads that the file must list."""
        return self.replaces.overloads if self.replaces is not None else (self.overload,)


class Refinement:
    """The recorded cases of one or several traces, and the operators among them that need work.

    shown: cases that dialogs and their testers see; held_back: those that only acceptance asks. users: which operators
    of OpInfo call what.
    """

    def __init__(
        self,
        session: Session,
        names: Sequence[str],
        dtypes: Collection[str] = (),
        self_consistent: bool = False,
        few_cases: bool = False,
    ) -> None:
        """names: traces. dtypes: only cases whose floating dtypes are among these; all, if empty. few_cases: a kernel
        is accepted on fewer independent cases than it takes otherwise.

        Raises UserError if a trace is missing or damaged.
        """
        self.session, self.names, self.self_consistent, self.few_cases = session, names, self_consistent, few_cases
        self._traces = {name: session.workspace.open_trace(name) for name in names}
        self._dtypes_wanted = frozenset(dtypes)
        self._revealed: frozenset[str] = frozenset()
        self.cases: dict[str, list[Case]] = defaultdict(list)
        self._tensors: dict[str, frozenset[str]] = {}  # by signature their floating dtypes, or all where there is none
        self._numbers: dict[str, frozenset[str]] = {}  # by signature the arguments that are Python numbers
        fusions = session.workspace.fusions()
        for name, trace in self._traces.items():
            self.users = Users(trace)
            fused = fused_cases(fusions.values(), trace, name)
            self._tensors |= {c.signature: _floats(c.dtypes) for cases in fused.values() for c in cases}
            self._numbers |= {c.signature: frozenset() for cases in fused.values() for c in cases}
            for overload, cases in (*read_calls(trace, self._see).cases.items(), *fused.items()):
                known = {c.id for c in self.cases[overload]}
                self.cases[overload] += [c for c in cases if c.id not in known and self._is_wanted(c)]

    def _see(self, record: CallRecord, case: str | None) -> None:
        self.users.see(record, case)
        if record.signature not in self._tensors:
            self._tensors[record.signature] = _floats(tensor["dtype"] for tensor in record.header["tensors"])
            self._numbers[record.signature] = frozenset(n for n, v in record.header["tree"].items() if _is_number(v))

    def trace(self, name: str) -> Trace:
        return self._traces[name]

    @cached_property
    def _halves(self) -> tuple[Mapping[str, list[Case]], Mapping[str, list[Case]]]:
        shown, held_back = split([c for cases in self.cases.values() for c in cases], self._revealed)
        return by_overload(shown), by_overload(held_back)

    @property
    def shown(self) -> Mapping[str, list[Case]]:
        return self._halves[0]

    def failing(self, names: Sequence[str]) -> list[Operator]:
        """The operators behind every overload that coverage finds failing, each once.

        Raises UserError if of all these no call is recorded that a kernel could be tested on.
        """
        rows = [row for name in names for row in self.session.coverage(name).failing()]
        overloads = list(dict.fromkeys(row.overload for row in rows if is_known(row.overload)))
        testable = [o for o in overloads if o in self.cases or self._served_by(o)]
        if overloads and not testable:
            raise UserError(
                f"no values of {overloads[0]}{f' and {len(overloads) - 1} more' if overloads[1:] else ''} are recorded "
                "to test a kernel on; record the model with --values full or seeded"
            )
        return list(dict.fromkeys(map(self.operator, testable)))

    def operator(self, overload: str) -> Operator:
        """The kernel file that serves `overload`, or would. Raises UserError if no trace here calls it."""
        if is_subgraph(overload):
            check_known(self.session.workspace.fusions(), overload)
        resolve(overload)
        if overload not in self.cases and not self._served_by(overload):
            called = sorted(self.cases)
            listed = ", ".join(called[:8]) + (f" and {len(called) - 8} more" if len(called) > 8 else "")
            raise UserError(f"no recorded call of {overload} that needs a kernel; recorded: {listed or 'none'}")
        match = self.session.library.match(overload)
        if match is None:
            return Operator(functional_base(overload), None)
        return Operator(match.plan.base, match.kernel)

    def _served_by(self, overload: str) -> list[str]:
        return [o for o in self.cases if functional_base(o) == overload]

    def is_covered(self, operator: Operator) -> bool:
        """Whether the operator has a kernel that passes every recorded case."""
        verdicts = self._every(operator)
        return bool(verdicts) and all(v.outcome is Outcome.PASS for v in verdicts)

    def reveal(self, case: str) -> None:
        """Hold this case back no longer: a dialog begins with its failure."""
        if case not in self._revealed:
            self._revealed = self._revealed | {case}
            self.__dict__.pop("_halves", None)

    def _every(self, operator: Operator) -> list[Verdict]:
        """Verdicts of the kernel in force, if there is one, on all recorded cases, the shown ones first."""
        if operator.replaces is None:
            return []
        return [v for half in self._halves for v in self.judge(operator, operator.replaces, half)]

    def count(self, operator: Operator) -> int:
        """How many recorded cases its kernel would be judged on."""
        return sum(len(self.cases[o]) for o in self._concerned(operator))

    def task(self, operator: Operator, command: str) -> Task:
        """What the state machine is given: schemas, documentation, cases, the current kernel and its first failure.

        Raises UserError where too few cases could be had to accept a kernel, so that no model is asked in vain.
        """
        self._check_evidence(operator)
        failed = [v for v in self._every(operator) if v.outcome is not Outcome.PASS]
        shown = {c.id for cases in self.shown.values() for c in cases}
        failing = min(failed, key=lambda v: (v.case not in shown, v.outcome is Outcome.SKIPPED), default=None)
        if failing is not None:
            self.reveal(failing.case)
        overloads = list(dict.fromkeys((operator.overload, *operator.serves)))
        every = [c for o in self._concerned(operator) for c in self.cases[o]]
        cases = [c for o in self._concerned(operator) for c in self.shown.get(o, ())]
        return Task(
            overload=operator.overload,
            schemas=tuple(str(resolve(o)._schema) for o in overloads),
            dtypes=self._asked(every),
            numbers=self._as_numbers(overloads, every),
            path=str(self.path(operator)),
            docs=documentation(operator.overload),
            cases=_various(cases),
            source=operator.replaces.written if operator.replaces is not None else None,
            failing=failing,
            profile=self.session.platform.lint,
            command=command,
            calls=self._callable(operator),
            draws=judged_by(operator.overload),
            sized_by_data=torch.Tag.dynamic_output_shape in resolve(operator.overload).tags,
        )

    def _check_evidence(self, operator: Operator) -> None:
        cases = [case for o in self._concerned(operator) for case in self.cases[o]]
        for overload in () if self.few_cases else sorted(few(cases)):
            own = self.cases[overload]
            count = count_evidence(self.session.workspace.cache, overload, own, self._dtypes(own))
            if count < ENOUGH:
                raise UserError(too_few(overload, count))

    def _callable(self, operator: Operator) -> tuple[str, ...]:
        if not self.self_consistent:
            return ()
        session = self.session
        found = callable_overloads(session.workspace, session.library, session.platform, operator.serves)
        return tuple(sorted(found))

    def _concerned(self, operator: Operator) -> list[str]:
        """Recorded overloads that the file serves, directly or by derivation, its own first."""
        served = [o for o in self.cases if o in operator.serves or functional_base(o) in operator.serves]
        return sorted(served, key=lambda o: (o != operator.overload, o))

    def _is_wanted(self, case: Case) -> bool:
        return not self._dtypes_wanted or self._floating(case) <= self._dtypes_wanted

    def _dtypes(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Floating dtypes of the recorded inputs; float32 where there are none."""
        return tuple(sorted({dtype for case in cases for dtype in self._floating(case)})) or ("float32",)

    def _floating(self, case: Case) -> frozenset[str]:
        return frozenset(filter(_is_floating, self._tensors[case.signature]))

    def _asked(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Dtypes that a prompt asks for: floating ones, then those of recorded calls that have none of these."""
        found = {dtype for case in cases for dtype in self._tensors[case.signature]}
        return tuple(sorted(found, key=lambda dtype: (not _is_floating(dtype), dtype))) or ("float32",)

    def _as_numbers(self, overloads: Sequence[str], cases: Sequence[Case]) -> tuple[str, ...]:
        """The tensors of these schemas for which calls give Python numbers, as PyTorch does for the 2 of x * 2."""
        given = {name for case in cases for name in self._numbers[case.signature]}
        tensors = [a.name for o in overloads for a in resolve(o)._schema.arguments if "Tensor" in str(a.type)]
        return tuple(dict.fromkeys(name for name in tensors if name in given))

    def path(self, operator: Operator) -> Path:
        """Where the accepted kernel goes: the place of the file it replaces, in the workspace's layer."""
        home = self.session.workspace.kernels
        if operator.replaces is not None:
            return home.joinpath(*operator.replaces.path.parts[-2:])
        return home / _NEW_KERNELS / f"{operator.overload.partition('::')[2].replace('.', '_')}.py"

    def judge(self, operator: Operator, kernel: KernelFile, cases: Mapping[str, list[Case]]) -> list[Verdict]:
        """Verdicts on each of these cases that `kernel` would serve, of the operator's own overload first.

        Raises UserError if kernels would call each other in a cycle.
        """
        jobs = self._jobs(operator, kernel, cases)
        verdicts = self.session.judge.judge(jobs)
        return [verdicts[job.plan.overload, case.id] for job in jobs for case in job.cases]

    def _jobs(self, operator: Operator, kernel: KernelFile, cases: Mapping[str, list[Case]]) -> list[Job]:
        library = self.session.library.with_candidate(kernel, self.self_consistent)
        matches = {o: library.match(o) for o in sorted(cases, key=lambda o: (o != operator.overload, o))}
        return [
            replace(m.job, cases=tuple(cases[o]))
            for o, m in matches.items()
            if m is not None and m.kernel.path == kernel.path
        ]

    def debug(self, operator: Operator, source: str) -> str:
        """The debugger's report on the first shown case with which a candidate crashes or hangs; '' if none does."""
        kernel = self.session.library.parse(source, self.path(operator))
        for job in self._jobs(operator, kernel, self.shown):
            verdicts = self.session.judge.judge([job])
            for case in job.cases:
                verdict = verdicts[job.plan.overload, case.id]
                if verdict.outcome in (Outcome.CRASH, Outcome.TIMEOUT):
                    return self._explained(job, case, verdict)
        return ""

    def _explained(self, job: Job, case: Case, verdict: Verdict) -> str:
        platform = self.session.platform
        if platform.device and verdict.outcome is Outcome.CRASH:
            return debug_cuda(job, case, platform.devices()[0])
        return debug(platform, job, case, verdict)

    def test(self, operator: Operator, source: str) -> TriedKernel:
        """Judge a candidate that serves all that the file it replaces serves: what `accept` puts in force if it passes.

        Its verdicts are what the state machine is told.
        """
        shown, held_back = ([c for cases in half.values() for c in cases] for half in self._halves)
        proposal = Proposal(
            self.path(operator),
            source,
            shown,
            held_back,
            serves=operator.serves,
            self_consistent=self.self_consistent,
            few_cases=self.few_cases,
        )
        return try_kernel(self.session, proposal)

    def accept(self, tried: TriedKernel, provenance: Mapping[str, Any]) -> Accepted | Refused:
        """Put a kernel that passed where coverage finds it, if nothing that happened meanwhile speaks against it."""
        return accept(self.session, tried, {"traces": list(self.names), **provenance})


def _various(cases: Sequence[Case]) -> tuple[str, ...]:
    """Up to SHOWN_CASES inputs, as unlike each other as they come: by overload, dtypes, dimensions and other arguments.

    Those with elements go before empty ones, those with more dimensions before others.
    """
    groups: dict[Any, list[str]] = defaultdict(list)
    packed = [(c, c.load()) for c in cases[:MOST_READ]]
    packed.sort(key=lambda pair: -min((_size(ref) for ref in pair[1].tensors), default=0))
    for case, p in packed:
        others = repr({k: v for k, v in p.tree.items() if not (isinstance(v, dict) and "tensor" in v)})
        kind = (case.overload, tuple((t.dtype, len(t.shape)) for t in p.tensors), others)
        groups[kind].append(f"{case.overload}: {describe(p)}")
    unlike = sorted(groups, key=lambda kind: (-sum(n for _, n in kind[1]), kind[0]))
    chosen: list[str] = []
    seen: Counter[Any] = Counter()
    while unlike and len(chosen) < SHOWN_CASES:
        best = min(unlike, key=lambda kind: (seen[kind[0], kind[2]], seen[kind[1]], seen[kind[2]]))
        unlike.remove(best)
        seen.update([(best[0], best[2]), best[1], best[2]])
        chosen.append(groups[best][0])
    return tuple(chosen)


def _floats(dtypes: Iterable[str]) -> frozenset[str]:
    """Those that are floating; all, where there are none."""
    known = frozenset(dtypes)
    return frozenset(filter(_is_floating, known)) or known


def _is_floating(dtype: str) -> bool:
    return "float" in dtype


def _is_number(value: object) -> bool:
    """Of an argument as a trace writes it down: infinities, NaN and complex numbers are named."""
    return isinstance(value, int | float) or (isinstance(value, dict) and bool({"float", "complex"} & value.keys()))


def _size(ref: TensorRef) -> int:
    return 2 if 0 not in ref.shape and ref.shape else int(0 not in ref.shape)
