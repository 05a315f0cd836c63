"""What is refined, how a candidate is tested, and where an accepted kernel goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from enable.coverage import cases_by_overload, is_known
from enable.session import Session
from generate.docs import documentation
from generate.library import Match
from generate.signatures import describe
from generate.task import Task
from traces import UserError
from traces.format import write_durably
from traces.overloads import resolve
from verify.cases import Case
from verify.derive import functional_base
from verify.judge import Job
from verify.kernel_file import KernelFile, KernelFileError
from verify.outcome import Outcome, Verdict

SHOWN_CASES = 6  # recorded inputs that a first prompt lists
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
    """The recorded cases of one or several traces, and the operators among them that need work."""

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        """names: traces. Raises UserError if one is missing or damaged."""
        self.session = session
        self.cases: dict[str, list[Case]] = defaultdict(list)
        for name in names:
            for overload, cases in cases_by_overload(session.workspace.open_trace(name)).items():
                known = {c.id for c in self.cases[overload]}
                self.cases[overload] += [c for c in cases if c.id not in known]

    def failing(self, names: Sequence[str]) -> list[Operator]:
        """The operators behind every overload that coverage finds failing, each once."""
        rows = [row for name in names for row in self.session.coverage(name).failing()]
        overloads = [row.overload for row in rows if is_known(row.overload)]
        return list(dict.fromkeys(self.operator(o) for o in overloads))

    def operator(self, overload: str) -> Operator:
        """The kernel file that serves `overload`, or would. Raises UserError if no trace here calls it."""
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
        verdicts = self.judge(operator, operator.replaces) if operator.replaces is not None else []
        return bool(verdicts) and all(v.outcome is Outcome.PASS for v in verdicts)

    def task(self, operator: Operator, command: str) -> Task:
        """What the state machine is given: schemas, documentation, cases, the current kernel and its first failure."""
        failing = None
        if operator.replaces is not None:
            failed = [v for v in self.judge(operator, operator.replaces) if v.outcome is not Outcome.PASS]
            failing = min(failed, key=lambda v: v.outcome is Outcome.SKIPPED, default=None)
        overloads = list(dict.fromkeys((operator.overload, *operator.serves)))
        cases = [c for o in self._concerned(operator) for c in self.cases[o]]
        shown = list(dict.fromkeys(f"{c.overload}: {describe(c.load())}" for c in cases))[:SHOWN_CASES]
        return Task(
            overload=operator.overload,
            schemas=tuple(str(resolve(o)._schema) for o in overloads),
            dtypes=self._dtypes(cases),
            path=str(self.path(operator)),
            docs=documentation(operator.overload),
            cases=tuple(shown),
            source=operator.replaces.source if operator.replaces is not None else None,
            failing=failing,
            profile=self.session.platform.lint,
            command=command,
        )

    def _concerned(self, operator: Operator) -> list[str]:
        """Recorded overloads that the file serves, directly or by derivation, its own first."""
        served = [o for o in self.cases if o in operator.serves or functional_base(o) in operator.serves]
        return sorted(served, key=lambda o: (o != operator.overload, o))

    def _dtypes(self, cases: Sequence[Case]) -> tuple[str, ...]:
        """Floating dtypes of the recorded inputs; float32 where there are none."""
        found = {ref.dtype for case in cases for ref in case.load().tensors if "float" in ref.dtype}
        return tuple(sorted(found)) or ("float32",)

    def path(self, operator: Operator) -> Path:
        """Where the accepted kernel goes: the place of the file it replaces, in the workspace's layer."""
        home = self.session.workspace.kernels
        if operator.replaces is not None:
            return home.joinpath(*operator.replaces.path.parts[-2:])
        return home / _NEW_KERNELS / f"{operator.overload.removeprefix('aten::').replace('.', '_')}.py"

    def judge(self, operator: Operator, kernel: KernelFile) -> list[Verdict]:
        """Verdicts on every recorded case that `kernel` would serve, of the operator's own overload first."""
        library = self.session.library.with_candidate(kernel)
        matches = {o: library.match(o) for o in sorted(self.cases, key=lambda o: (o != operator.overload, o))}
        jobs = [self._job(o, m) for o, m in matches.items() if m is not None and m.kernel is kernel]
        verdicts = self.session.judge.judge(jobs)
        return [verdicts[job.plan.overload, case.id] for job in jobs for case in job.cases]

    def _job(self, overload: str, match: Match) -> Job:
        return Job(match.plan, match.kernel, tuple(self.cases[overload]), match.copy)

    def test(self, operator: Operator, source: str) -> list[Verdict]:
        """The state machine's tester: judge a candidate that serves all that the file it replaces served."""
        try:
            kernel = KernelFile.parse(source, self.path(operator))
        except KernelFileError as error:
            return [Verdict("file", Outcome.RUNTIME_ERROR, str(error), str(error))]
        if set(kernel.overloads) != set(operator.serves):  # more would go into the library untested
            detail = f"OVERLOADS must list exactly {', '.join(operator.serves)}; it lists {', '.join(kernel.overloads)}"
            return [Verdict("file", Outcome.RUNTIME_ERROR, detail, detail)]
        return self.judge(operator, kernel)

    def accept(self, operator: Operator, source: str) -> Path:
        """Write an accepted kernel where coverage finds it."""
        path = self.path(operator)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, [source.encode()])
        self.session.reload_library()
        return path
