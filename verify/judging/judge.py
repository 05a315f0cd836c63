"""Judge kernels: compile and run every case in children, compare the results here, and store the verdicts."""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from verify.cases.case import Case
from verify.contract.kernel_file import KernelFile
from verify.judging.case_run import JudgedCase, skipped
from verify.judging.dialect import limited, marks, refusal
from verify.judging.job import RUN, Job
from verify.judging.job_run import Run
from verify.judging.rerun import RERUN
from verify.judging.standings import Standings
from verify.judging.verdicts import Identity, VerdictStore
from verify.lint import load_profile
from verify.lint.profile import DEFAULT
from verify.outcome import Outcome, Verdict
from verify.platforms import COMPILE, EXECUTE, Device, Platform
from verify.sandbox.children import Zygote
from verify.sandbox.confine import level
from verify.sandbox.wire import WireError

__all__ = ["Job", "Judge", "JudgeClosed"]

T = TypeVar("T")
R = TypeVar("R")

WORTH_HELP = 8  # minimum pending cases of a job for which another worker starts children
MAX_SECONDS = 3600.0  # time limit for all cases of a job; the job fails if it is exceeded
AHEAD = 2  # cases that are prepared while one is judged
MAX_DEATHS = 2  # crashes and timeouts of a job, after which its other cases are skipped


class JudgeClosed(Exception):
    """Error raised if the judge was closed, for example by Ctrl-C, while a job was running."""


class _Work:
    """Pending cases of one job, for the worker that began it and those that help.

    Attributes:
        job: The job.
        end: Last case that counts, by index; lower after a failure that ends the job.
        deaths: How many children died.
        seconds: Time that its cases have taken.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.end, self.deaths, self.seconds = job, len(job.cases) - 1, 0, 0.0
        self._lock = threading.Lock()
        self._left = defaultdict[frozenset[str], deque[int]](deque)  # indices of pending cases by their dtypes
        for at, case in enumerate(job.cases):
            self._left[frozenset(case.dtypes)].append(at)

    @property
    def left(self) -> int:
        """How many cases no worker has begun."""
        with self._lock:
            return sum(map(len, self._left.values()))

    def places(self, helping: bool) -> Iterator[int]:
        """Yield the indices of cases that no worker has begun.

        The first worker gets the first case. A helping worker gets cases in the dtypes that will be reached last,
        so that the two do not compile the same kernels.
        """
        dtypes_taken: frozenset[str] | None = None
        while True:
            with self._lock:
                if not self._left:
                    return
                first = min(self._left, key=lambda dtypes: self._left[dtypes][0])
                if not helping or dtypes_taken is None or dtypes_taken not in self._left:
                    distant = max(self._left, key=lambda dtypes: (dtypes != first, len(self._left[dtypes])))
                    dtypes_taken = distant if helping else first
                at = self._left[dtypes_taken].popleft()
                if not self._left[dtypes_taken]:
                    del self._left[dtypes_taken]
            if at <= self.end:
                yield at

    def count(self, seconds: float, died: bool) -> None:
        """Count a case that was judged: its time, and whether its child died."""
        with self._lock:
            self.seconds += seconds
            self.deaths += died

    def ended(self, index: int) -> None:
        """Discard all cases after this index."""
        with self._lock:
            self.end = min(self.end, index)


class Judge:
    """Context manager that owns the children, for any number of threads.

    It judges up to `workers` jobs at once; the default is the number of cores, at most 16.
    """

    def __init__(
        self,
        platform: Platform,
        store: VerdictStore,
        workers: int | None = None,
        sandbox: str = "full",
        cache: Path | None = None,
    ) -> None:
        """Prepare a judge.

        Args:
            platform: Platform to judge on.
            store: Store for verdicts.
            workers: How many jobs are judged at once.
            sandbox: `full` or `none`.
            cache: Directory that keeps compiled kernels for later processes.

        Raises:
            UserError: Full confinement, the platform's device or its compiler is not available.
        """
        platform.check_targets()
        self.platform = platform
        # None for the default dialect
        self._profile = load_profile(platform.lint) if platform.lint != DEFAULT else None
        self.sandbox = level(sandbox)
        self.confinement = sandbox
        self._devices: Iterator[Device | None] | None = None  # devices take turns
        self._cache = cache
        self._store = store
        self._workers = workers or min(16, os.cpu_count() or 1)
        self._idle: queue.SimpleQueue[dict[str, Zygote]] = queue.SimpleQueue()
        self._started: list[Zygote] = []
        self._permits = threading.BoundedSemaphore(self._workers)  # shared by all threads
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every child; a worker that waits for one gives up."""
        with self._lock:
            self._closed = True
            for zygote in self._started:
                zygote.close()

    def judge(
        self, jobs: Iterable[Job], on_verdict: Callable[[Job, Verdict], None] = lambda job, verdict: None
    ) -> dict[tuple[str, str], Verdict]:
        """Judge the jobs and return verdicts by (overload, case id).

        `on_verdict` is called for each verdict, in the thread of the worker.
        """
        verdicts: dict[tuple[str, str], Verdict] = {}

        works = [_Work(self._limited(job)) for job in jobs]

        def run(work: _Work, helping: bool = False) -> None:
            for verdict in self._judge_work(work, helping):
                verdicts[work.job.plan.overload, verdict.case] = verdict
                on_verdict(work.job, verdict)

        def begin_or_help(work: _Work | None) -> None:
            if work is not None:
                run(work)
            while work is None and (other := self._to_help(works)) is not None:
                run(other, helping=True)

        self.each(begin_or_help, [*works, *[None] * (self._workers - 1)])
        for work in works:
            for case in work.job.cases[work.end + 1 :]:
                verdicts.pop((work.job.plan.overload, case.id), None)
        return verdicts

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Apply `work` to the items in parallel and return the results; if one call raises, the judge is closed."""
        futures: list[Future[R]] = []
        try:
            with ThreadPoolExecutor(self._workers) as pool, ExitStack() as failed:
                failed.callback(self.close)  # so that no worker continues to wait for its child
                failed.callback(pool.shutdown, wait=False, cancel_futures=True)
                futures += [pool.submit(work, item) for item in items]
                for future in as_completed(futures):
                    future.result()
                failed.pop_all()
        except JudgeClosed:  # another worker raised the error that explains this one
            for future in futures:
                error = None if future.cancelled() else future.exception()
                if error is not None and not isinstance(error, JudgeClosed):
                    raise error from None
            raise
        return [future.result() for future in futures]

    def warm(self, off: Collection[str] = ()) -> None:
        """Start the children for one job now, so that the first case without a stored verdict does not wait."""
        with self._borrowed(off):
            pass

    def standings(self, kernels: tuple[str, ...] = ()) -> Standings:
        """Return the stored results for all kernels, or for these, on this platform."""
        return self._store.standings(self.platform, kernels)

    def accuracies(self) -> dict[tuple[tuple[str, ...], str], float]:
        """Return the largest error in a passed case by kernels and overload, relative to ATen's own error."""
        return self._store.accuracies(self.platform)

    def _limited(self, job: Job) -> Job:
        """Return the job with only the dtypes that the platform supports, and with the marks of its dialect."""
        job = replace(job, marks=(*job.marks, *marks(job, self.platform)))
        return replace(job, kernel=limited(job.kernel, self._profile)) if self._profile is not None else job

    def keep_whole(self, kernel: KernelFile, detail: str) -> None:
        """Record that a kernel file passed a complete trial."""
        self._store.put_whole(kernel.key, kernel.overloads[0], self.platform, self.sandbox, detail)

    def _to_help(self, works: Sequence[_Work]) -> _Work | None:
        """Return the job with most pending cases if it is worth starting more children for it, else None."""
        work = max(works, key=lambda work: work.left, default=None)
        if work is None or work.left < WORTH_HELP or not self._permits.acquire(blocking=False):
            return None
        self._permits.release()
        return work

    def _judge_work(self, work: _Work, helping: bool) -> Iterator[Verdict]:
        """Yield a verdict for each case in turn, stored or new; the next cases are prepared meanwhile."""
        outside = refusal(work.job, self.platform)
        if outside is not None:
            yield from (replace(outside, case=work.job.cases[at].id) for at in work.places(helping))
            return
        job, run, waiting = work.job, None, deque[tuple[int, Verdict | None]]()
        pending = self._asked(work, helping)
        with ExitStack() as stack:
            while True:
                waiting.extend(itertools.islice(pending, 1 + AHEAD - len(waiting)))
                if not waiting:
                    return
                for at, stored in waiting if work.deaths < MAX_DEATHS else ():
                    if stored is None and at <= work.end:
                        run = run or stack.enter_context(self.running(job))
                        run.begin(job.cases[at])
                at, verdict = waiting.popleft()
                case, started = job.cases[at], time.monotonic()
                if at > work.end:
                    continue
                if verdict is None and work.deaths >= MAX_DEATHS:
                    verdict = skipped(case, f"not run: {work.deaths} earlier cases crashed or hung")
                elif verdict is None and work.seconds > MAX_SECONDS:
                    message = f"the cases before took over {MAX_SECONDS / 60:.0f} minutes"
                    verdict = Verdict(case.id, Outcome.TIMEOUT, message, layer="time")
                elif verdict is None:
                    assert run is not None
                    verdict = self._judged(run, job, case)
                work.count(time.monotonic() - started, verdict.outcome in (Outcome.CRASH, Outcome.TIMEOUT))
                yield verdict
                if job.first and verdict.outcome not in (Outcome.PASS, Outcome.SKIPPED):
                    work.ended(at)

    def _asked(self, work: _Work, helping: bool) -> Iterator[tuple[int, Verdict | None]]:
        """Yield the indices of cases that still need a verdict, each with its stored verdict if there is one."""
        for at in work.places(helping):
            case = work.job.cases[at]
            if work.job.needed is None or work.job.needed(work.job, case.id):
                yield at, self._store.get(self._identity(work.job, case))

    @contextmanager
    def running(self, job: Job) -> Iterator[Run]:
        """Provide the runner for one job, with its children; raise JudgeClosed if they were ended meanwhile."""
        try:
            with self._borrowed(job.off) as zygotes, Run(job, self.platform, zygotes, cache=self._cache) as run:
                yield run
        except (OSError, WireError) as error:
            if self._closed:
                raise JudgeClosed("the judge was closed while a case was judged") from error
            raise

    def _judged(self, run: Run, job: Job, case: Case) -> Verdict:
        started = time.monotonic()
        judged: JudgedCase = run.judge(case)
        verdict = replace(judged.verdict, sandbox=self.sandbox)
        if self._closed:  # children were killed, so this is no verdict
            raise JudgeClosed("the judge was closed while a case was judged")
        if judged.lasts:
            self._store.put(self._identity(job, case), verdict, time.monotonic() - started)
        return verdict

    def _identity(self, job: Job, case: Case) -> Identity:
        conditions = job.conditions(case.id, self.sandbox)
        return Identity(job.kernels, job.plan.overload, case.id, self.platform, conditions)

    @contextmanager
    def _borrowed(self, off: Collection[str]) -> Iterator[dict[str, Zygote]]:
        """Borrow idle children, or start new ones, for a job without these layers."""
        with self._permits:
            try:
                zygotes = self._idle.get_nowait()
            except queue.Empty:
                zygotes = {}
            try:
                self._complete(zygotes, off)
                yield zygotes
            finally:
                self._idle.put(zygotes)

    def _complete(self, zygotes: dict[str, Zygote], off: Collection[str]) -> None:
        """Start the missing children; raise UserError if the platform's device is missing."""
        modes = [COMPILE, *([] if RUN in off else [self.platform.mode])]
        modes += [RERUN] if EXECUTE in modes and RERUN not in off else []
        missing = {mode: None if mode == COMPILE else self._device() for mode in modes if mode not in zygotes}
        with ThreadPoolExecutor(2) as pool:  # each start imports torch, which takes seconds
            zygotes.update(zip(missing, pool.map(self._start, missing, missing.values()), strict=True))

    def _device(self) -> Device | None:
        with self._lock:
            if self._devices is None:
                self._devices = itertools.cycle(self.platform.devices() or [None])
            return next(self._devices)

    def _start(self, mode: str, device: Device | None) -> Zygote:
        zygote = Zygote(EXECUTE if mode == RERUN else mode, self.confinement, device)
        with self._lock:
            if not self._closed:
                self._started.append(zygote)
                return zygote
        zygote.close()
        raise JudgeClosed("the judge was closed while a child started")
