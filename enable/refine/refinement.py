"""Collect the recorded cases to refine, build the tasks for the state machine, and test and accept candidates.

Used by `enable refine` and by campaigns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from enable.cover.coverage import read_calls
from enable.cover.needs import is_known
from enable.cover.opinfo import Users
from enable.cover.self_consistency import callable_overloads
from enable.cover.session import Session
from enable.refine.acceptance import Accepted, TriedKernel, accept, try_kernel
from enable.refine.evidence import count_evidence, few, split
from enable.refine.proposal import Proposal, Refused, too_few
from enable.subgraphs import check_known, fused_cases
from generate.docs import documentation
from generate.prompts import chip
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

SHOWN_CASES = 6  # number of recorded inputs that the first prompt lists
MOST_READ = 400  # number of cases that are read to choose them
_NEW_KERNELS = "refined"  # group for a kernel that does not replace another one


@dataclass(frozen=True)
class Operator:
    """One kernel file to write or repair.

    Attributes:
        overload: Overload that the file is named after.
        replaces: Kernel file that the new one overrides; None for a new kernel.
    """

    overload: str
    replaces: KernelFile | None

    @property
    def serves(self) -> tuple[str, ...]:
        """Return the overloads that the file must list."""
        return self.replaces.overloads if self.replaces is not None else (self.overload,)


class Refinement:
    """The recorded cases in one or more traces, and the operators among them that need work.

    Attributes:
        session: Session with the library, the judge and the workspace.
        names: Trace names.
        cases: Recorded cases by overload.
        users: OpInfo operators and the overloads that they call.
        self_consistent: True if kernels may call verified library kernels.
        few_cases: True if kernels may be accepted on fewer independent cases than usual.
    """

    def __init__(
        self,
        session: Session,
        names: Sequence[str],
        dtypes: Collection[str] = (),
        self_consistent: bool = False,
        few_cases: bool = False,
    ) -> None:
        """Read the recorded cases in the traces, also for the workspace's fused subgraphs.

        Args:
            session: Session with the library, the judge and the workspace.
            names: Trace names.
            dtypes: Only cases whose floating-point dtypes are all in this collection; if empty, all cases.
            self_consistent: True if kernels may call verified library kernels.
            few_cases: True if kernels may be accepted on fewer independent cases than usual.

        Raises:
            UserError: If a trace is missing or damaged.
        """
        self.session, self.names, self.self_consistent, self.few_cases = session, names, self_consistent, few_cases
        self._traces = {name: session.workspace.open_trace(name) for name in names}
        self._dtypes_wanted = frozenset(dtypes)
        self._revealed: frozenset[str] = frozenset()
        self.cases: dict[str, list[Case]] = defaultdict(list)
        self._tensors: dict[str, frozenset[str]] = {}  # floating dtypes by signature; all dtypes if none is floating
        self._numbers: dict[str, frozenset[str]] = {}  # names of the arguments that are Python numbers, by signature
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
        """Note the dtypes and the numeric arguments of a recorded call's signature."""
        self.users.see(record, case)
        if record.signature not in self._tensors:
            self._tensors[record.signature] = _floats(tensor["dtype"] for tensor in record.header["tensors"])
            self._numbers[record.signature] = frozenset(n for n, v in record.header["tree"].items() if _is_number(v))

    def trace(self, name: str) -> Trace:
        return self._traces[name]

    @cached_property
    def _halves(self) -> tuple[Mapping[str, list[Case]], Mapping[str, list[Case]]]:
        """Return the shown cases and the held-back cases, both by overload."""
        shown, held_back = split([c for cases in self.cases.values() for c in cases], self._revealed)
        return by_overload(shown), by_overload(held_back)

    @property
    def shown(self) -> Mapping[str, list[Case]]:
        """Return the cases that dialogs and their testers may see, by overload."""
        return self._halves[0]

    def failing(self, names: Sequence[str]) -> list[Operator]:
        """Return the operators for all overloads that fail in these traces' coverage, without duplicates.

        Raises:
            UserError: If overloads fail, and no recorded call has values to test a kernel on.
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
        """Return the kernel file that serves `overload`, or the new file that would.

        Raises:
            UserError: If no trace here calls the overload.
        """
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
        """Return the recorded overloads that a kernel for `overload` serves by derivation."""
        return [o for o in self.cases if functional_base(o) == overload]

    def is_covered(self, operator: Operator) -> bool:
        """Return True if the operator has a kernel that passes every recorded case."""
        verdicts = self._every(operator)
        return bool(verdicts) and all(v.outcome is Outcome.PASS for v in verdicts)

    def reveal(self, case: str) -> None:
        """Stop holding this case back, because a dialog begins with its failure."""
        if case not in self._revealed:
            self._revealed = self._revealed | {case}
            self.__dict__.pop("_halves", None)

    def _every(self, operator: Operator) -> list[Verdict]:
        """Return verdicts for the kernel in force on all recorded cases, shown ones first; empty if there is none."""
        if operator.replaces is None:
            return []
        return [v for half in self._halves for v in self.judge(operator, operator.replaces, half)]

    def count(self, operator: Operator) -> int:
        """Count the recorded cases that the operator's kernel is judged on."""
        return sum(len(self.cases[o]) for o in self._concerned(operator))

    def task(self, operator: Operator, command: str) -> Task:
        """Return the state machine's task: schemas, documentation, cases, current kernel and first failing case.

        The first failing case is revealed, so that the dialog can show it.

        Args:
            operator: The operator.
            command: Command that resumes the run.

        Raises:
            UserError: If there are too few cases to accept a kernel; no call to a model is wasted then.
        """
        self._check_evidence(operator)
        failed = [v for v in self._every(operator) if v.outcome is not Outcome.PASS]
        shown = {c.id for cases in self.shown.values() for c in cases}
        failing = min(failed, key=lambda v: (v.case not in shown, v.outcome is Outcome.SKIPPED), default=None)
        if failing is not None:
            self.reveal(failing.case)
        overloads = list(dict.fromkeys((operator.overload, *operator.serves)))
        recorded_cases = [c for o in self._concerned(operator) for c in self.cases[o]]
        cases = [c for o in self._concerned(operator) for c in self.shown.get(o, ())]
        return Task(
            overload=operator.overload,
            schemas=tuple(str(resolve(o)._schema) for o in overloads),
            dtypes=self._asked(recorded_cases),
            numbers=self._as_numbers(overloads, recorded_cases),
            path=str(self.path(operator)),
            docs=documentation(operator.overload),
            cases=_various(cases),
            source=operator.replaces.written if operator.replaces is not None else None,
            failing=failing,
            profile=self.session.platform.lint,
            chip=chip(self.session.platform),
            command=command,
            calls=self._callable(operator),
            draws=judged_by(operator.overload),
            sized_by_data=torch.Tag.dynamic_output_shape in resolve(operator.overload).tags,
        )

    def _check_evidence(self, operator: Operator) -> None:
        """Raise UserError if an overload has too few independent cases, recorded or from OpInfo."""
        cases = [case for o in self._concerned(operator) for case in self.cases[o]]
        for overload in () if self.few_cases else sorted(few(cases)):
            recorded = self.cases[overload]
            count = count_evidence(self.session.workspace.cache, overload, recorded, self._dtypes(recorded))
            if count < ENOUGH:
                raise UserError(too_few(overload, count))

    def _callable(self, operator: Operator) -> tuple[str, ...]:
        """Return the overloads whose kernels the operator's kernel may call; empty unless `self_consistent` is set."""
        if not self.self_consistent:
            return ()
        session = self.session
        overloads = callable_overloads(session.workspace, session.library, session.platform, operator.serves)
        return tuple(sorted(overloads))

    def _concerned(self, operator: Operator) -> list[str]:
        """Return the recorded overloads that the file serves, directly or by derivation, its own overload first."""
        served = [o for o in self.cases if o in operator.serves or functional_base(o) in operator.serves]
        return sorted(served, key=lambda o: (o != operator.overload, o))

    def _is_wanted(self, case: Case) -> bool:
        """Return True if all floating-point dtypes in the case are in the requested ones."""
        return not self._dtypes_wanted or self._floating(case) <= self._dtypes_wanted

    def _dtypes(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Return the recorded inputs' floating-point dtypes, sorted; float32 if there are none."""
        return tuple(sorted({dtype for case in cases for dtype in self._floating(case)})) or ("float32",)

    def _floating(self, case: Case) -> frozenset[str]:
        """Return the floating-point dtypes in a case's signature."""
        return frozenset(filter(_is_floating, self._tensors[case.signature]))

    def _asked(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Return the dtypes for the prompt: floating-point ones, then those in calls without floating-point tensors."""
        dtypes = {dtype for case in cases for dtype in self._tensors[case.signature]}
        return tuple(sorted(dtypes, key=lambda dtype: (not _is_floating(dtype), dtype))) or ("float32",)

    def _as_numbers(self, overloads: Sequence[str], cases: Sequence[Case]) -> tuple[str, ...]:
        """Return the tensor arguments for which calls pass Python numbers, as PyTorch does for the 2 in `x * 2`."""
        numeric = {name for case in cases for name in self._numbers[case.signature]}
        tensors = [a.name for o in overloads for a in resolve(o)._schema.arguments if "Tensor" in str(a.type)]
        return tuple(dict.fromkeys(name for name in tensors if name in numeric))

    def path(self, operator: Operator) -> Path:
        """Return the accepted kernel's path in the workspace, which mirrors that of the file it replaces."""
        home = self.session.workspace.kernels
        if operator.replaces is not None:
            return home.joinpath(*operator.replaces.path.parts[-2:])
        return home / _NEW_KERNELS / f"{operator.overload.partition('::')[2].replace('.', '_')}.py"

    def judge(self, operator: Operator, kernel: KernelFile, cases: Mapping[str, list[Case]]) -> list[Verdict]:
        """Return the verdicts on the cases that `kernel` would serve, those for the operator's own overload first.

        Raises:
            UserError: If kernels would call each other in a cycle.
        """
        jobs = self._jobs(operator, kernel, cases)
        verdicts = self.session.judge.judge(jobs)
        return [verdicts[job.plan.overload, case.id] for job in jobs for case in job.cases]

    def _jobs(self, operator: Operator, kernel: KernelFile, cases: Mapping[str, list[Case]]) -> list[Job]:
        """Return the jobs for the cases that `kernel` serves, the operator's own overload first."""
        library = self.session.library.with_candidate(kernel, self.self_consistent)
        matches = {o: library.match(o) for o in sorted(cases, key=lambda o: (o != operator.overload, o))}
        return [
            replace(m.job, cases=tuple(cases[o]))
            for o, m in matches.items()
            if m is not None and m.kernel.path == kernel.path
        ]

    def debug(self, operator: Operator, source: str) -> str:
        """Return the debugger's report on the first shown case that crashes or hangs; '' if there is none."""
        kernel = self.session.library.parse(source, self.path(operator))
        for job in self._jobs(operator, kernel, self.shown):
            verdicts = self.session.judge.judge([job])
            for case in job.cases:
                verdict = verdicts[job.plan.overload, case.id]
                if verdict.outcome in (Outcome.CRASH, Outcome.TIMEOUT):
                    return self._explained(job, case, verdict)
        return ""

    def _explained(self, job: Job, case: Case, verdict: Verdict) -> str:
        """Return the CUDA debugger's report after a crash on a device, otherwise the general debugger's."""
        platform = self.session.platform
        if platform.run_device and verdict.outcome is Outcome.CRASH:
            return debug_cuda(job, case, platform.devices()[0])
        return debug(platform, job, case, verdict)

    def test(self, operator: Operator, source: str) -> TriedKernel:
        """Judge a candidate for all overloads that the file it replaces serves.

        The verdicts go to the state machine. If the candidate passes, `accept` can put this result in force.
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
        """Put a kernel that passed in force, unless a later change in the library speaks against it."""
        return accept(self.session, tried, {"traces": list(self.names), **provenance})


def _various(cases: Sequence[Case]) -> tuple[str, ...]:
    """Return descriptions of up to SHOWN_CASES inputs, chosen to differ as much as possible.

    Inputs differ in overload, dtypes, dimension count and non-tensor arguments. Non-empty inputs come
    before empty ones, and inputs with more dimensions come first.

    The loop is greedy: it picks the kind whose properties were chosen least often so far.
    """
    groups: dict[Any, list[str]] = defaultdict(list)
    packed = [(c, c.load()) for c in cases[:MOST_READ]]
    packed.sort(key=lambda pair: -min((_size(ref) for ref in pair[1].tensors), default=0))
    for case, p in packed:
        arguments = repr({k: v for k, v in p.tree.items() if not (isinstance(v, dict) and "tensor" in v)})
        kind = (case.overload, tuple((t.dtype, len(t.shape)) for t in p.tensors), arguments)
        groups[kind].append(f"{case.overload}: {describe(p)}")
    remaining = sorted(groups, key=lambda kind: (-sum(n for _, n in kind[1]), kind[0]))
    chosen: list[str] = []
    times_chosen: Counter[Any] = Counter()
    while remaining and len(chosen) < SHOWN_CASES:
        best = min(
            remaining, key=lambda kind: (times_chosen[kind[0], kind[2]], times_chosen[kind[1]], times_chosen[kind[2]])
        )
        remaining.remove(best)
        times_chosen.update([(best[0], best[2]), best[1], best[2]])
        chosen.append(groups[best][0])
    return tuple(chosen)


def _floats(dtypes: Iterable[str]) -> frozenset[str]:
    """Return the floating-point dtypes; all dtypes if none is floating-point."""
    known = frozenset(dtypes)
    return frozenset(filter(_is_floating, known)) or known


def _is_floating(dtype: str) -> bool:
    return "float" in dtype


def _is_number(value: object) -> bool:
    """Return True for a numeric argument as a trace stores it: infinities, NaN and complex numbers are dictionaries."""
    return isinstance(value, int | float) or (isinstance(value, dict) and bool({"float", "complex"} & value.keys()))


def _size(ref: TensorRef) -> int:
    """Return a tensor's sort rank: 0 if it is empty, 1 if it is a scalar, otherwise 2."""
    return 2 if 0 not in ref.shape and ref.shape else int(0 not in ref.shape)
