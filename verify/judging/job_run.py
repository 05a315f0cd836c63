"""Run one job's cases in sequence: compile, run without kernels, run, compare, and repeat."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from traces.overloads import kind
from verify.cases.case import (
    Case,
    NoReference,
    reference,
)
from verify.comparison.laws import judged_by
from verify.judging.asking import Children
from verify.judging.case_run import Begun, CaseRun, JudgedCase, drawing, pairs_of, unlisted
from verify.judging.job import Job
from verify.judging.repeats import configured
from verify.judging.reply import MalformedReply
from verify.platforms import COMPILE, Platform
from verify.sandbox.children import ChildDied, Zygote


class Run:
    """Children of one job; `log_fd` and `cache` are those of Children.

    `begin` prepares a case in a second thread while the previous case runs. Nothing is judged there, and no child
    receives a case before it has answered the previous one.
    """

    def __init__(
        self,
        job: Job,
        platform: Platform,
        zygotes: dict[str, Zygote],
        log_fd: int | None = None,
        cache: Path | None = None,
    ) -> None:
        self._job = job
        self._platform = platform
        self._mode = platform.mode
        self._children = Children(job, platform, zygotes, log_fd, cache)
        self._ahead = ThreadPoolExecutor(1, "ahead")
        self._begun: dict[str, Future[Begun]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._children.close()
        self._ahead.shutdown(cancel_futures=True)

    def begin(self, case: Case) -> None:
        """Compute the reference of a case, and compile its launches, in the background."""
        if case.id not in self._begun:
            self._begun[case.id] = self._ahead.submit(self._begin, case)

    def judge(self, case: Case) -> JudgedCase:
        """Judge one case: reference, compile, execute, compare; raise TraceError for a damaged trace."""
        begun = self._begun.pop(case.id).result() if case.id in self._begun else self._begin(case)
        return CaseRun(self._job, self._platform, self._children, case).judge(begun)

    def _begin(self, case: Case) -> Begun:
        """Prepare a case; raise TraceError for a damaged trace."""
        if kind(case.overload) == "random" and not judged_by(case.overload):
            return Begun("it draws random numbers, and there is no law to judge them by")
        if case.refused:
            return Begun()
        philox = pairs_of(self._job, case)[0]
        try:
            expected = reference(case, philox, self._platform.limits.flush_denormals)
        except NoReference as error:
            return Begun(str(error))
        missing = unlisted(self._job, expected.before)
        if missing:
            return Begun(missing)
        request = drawing(self._job, configured(case.id, 0), philox)
        try:
            return Begun("", expected, self._children.ask(COMPILE, expected.before, request))
        except (ChildDied, MalformedReply) as end:
            return Begun("", expected, end)
