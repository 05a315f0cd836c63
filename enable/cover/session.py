"""Share a workspace's library, judge and verdicts on one platform between coverage and refinement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from enable.cluster import connected
from enable.cover.coverage import Coverage, measure
from enable.cover.judge_ray import RayJudge
from enable.cover.needs import needed_overloads
from enable.cover.opinfo import OpInfoCoverage, is_opinfo, measure_opinfo
from enable.options import PLATFORM, library_words
from enable.progress import show_progress
from enable.providers import words
from enable.remedies import on_an_accelerator
from enable.workspace import Workspace
from generate.kernel_library import Library
from traces import UserError
from traces.errors import choose_from
from traces.store import Trace
from verify import platforms
from verify.cases.opinfo import tested_overloads
from verify.judging.judge import Job, Judge
from verify.outcome import Verdict

LOCAL, RAY = "local", "ray"  # engines: the processes in which kernels are judged


class Session:
    """A context manager around one judge; `base` is the base library, or None for the packaged one."""

    def __init__(
        self, workspace: Workspace, base: Path | None, platform: str, tests: int | None = None, engine: str = LOCAL
    ) -> None:
        """Load the platform and the library.

        Args:
            workspace: The workspace.
            base: Directory of the base library, or None for the packaged one.
            platform: Platform name or file.
            tests: Jobs judged at once; None for the judge's default.
            engine: Where children run, LOCAL or RAY.

        Raises:
            UserError: The platform or engine is unknown, or the library is broken.
        """
        if engine not in (LOCAL, RAY):
            raise UserError(f"unknown engine {engine!r}{choose_from(engine, (LOCAL, RAY))}")
        self.workspace, self._tests, self._engine = workspace, tests, engine
        self.platform = platforms.load(platform)
        self.base = base
        self.library = workspace.library(base, self.platform)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        store = self.workspace.verdicts()
        self._stack.callback(store.close)
        judge: Judge
        if self._engine == RAY:
            judge = RayJudge(self.platform, store, connected())
        else:
            judge = Judge(self.platform, store, self._tests, cache=self.workspace.compiled)
        self.judge = self._stack.enter_context(judge)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def reload_library(self) -> Library:
        """Read the library again after a kernel was accepted."""
        self.library = self.workspace.library(self.base, self.platform)
        return self.library

    def command(self, *words: str) -> str:
        """Return an `enable` command with these words for this workspace, platform and library."""
        platform = [] if self.platform.typed == PLATFORM else ["--platform", self.platform.typed]
        return self.workspace.command(*words, *platform, *library_words(self.base))

    def refining(self, name: str, *selection: str, overloads: Collection[str]) -> str:
        """Return the command that refines these overloads of the trace `name`; the words `selection` select them."""
        return self.command("refine", name, *selection, *words(overloads))

    def coverage(self, name: str, of: Sequence[str] = ()) -> Coverage:
        """Return the coverage of the trace `name`, limited to overloads of the traces `of` if there are any.

        Raises:
            UserError: The trace does not exist or is damaged.
        """
        trace = self.workspace.open_trace(name)
        only = frozenset().union(*(needed_overloads(self.workspace.open_trace(o)) for o in of)) if of else None
        model = model_of(trace)
        opinfo = self._tested()
        with judging(f"coverage {name}") as start:
            coverage = measure(model, trace, self.library, self.judge, start, opinfo, only)
        if coverage.of_cpus:
            coverage = replace(coverage, instead=on_an_accelerator(trace, self.workspace))
        return self.hinted(coverage, name)

    def hinted(self, coverage: Coverage, name: str) -> Coverage:
        """Return the coverage of the trace `name` with a suggested command in each row."""
        return coverage.with_hints(
            lambda overload: self.refining(name, "--op", overload, overloads=[overload]),
            lambda overload, case: self.command("verify", overload, "--cases", f"trace:{name}", "--case", case),
        )

    def opinfo_coverage(self, name: str, exhaustive: bool) -> OpInfoCoverage | None:
        """Return the coverage of the trace `name` by operator, or None if it is not an OpInfo trace.

        Raises:
            UserError: The trace does not exist or is damaged.
        """
        trace = self.workspace.open_trace(name)
        if not is_opinfo(trace):
            return None
        opinfo = self._tested()
        with judging(f"coverage {name}") as start:
            return measure_opinfo(trace, self.library, self.judge, start, opinfo, exhaustive)

    def _tested(self) -> frozenset[str]:
        """Return the overloads that OpInfo tests."""
        with show_progress("looking up what OpInfo tests"):
            return tested_overloads(self.workspace.cache)


@contextmanager
def judging(title: str) -> Iterator[Callable[[int], Callable[[Job, Verdict], None]]]:
    """Show progress while a trace is read and judged; yields the `progress` argument for `measure`."""
    with show_progress(f"{title}: reading the trace") as work:

        def start(total: int) -> Callable[[Job, Verdict], None]:
            work.count(title, total, "starting children")
            return lambda job, verdict: work.step(job.plan.overload)

        yield start


def model_of(trace: Trace) -> str:
    """Return the name of the recorded model."""
    recorded = trace.manifest.get("info")  # a user's own recording may hold any value here
    model = recorded.get("model") if isinstance(recorded, dict) else None
    return model if isinstance(model, str) else trace.path.name.removesuffix(".trace")
