"""A judge whose children run on a Ray cluster; verdicts are compared, stored and reported in this process.

Each worker is an actor that holds one job at a time and receives its cases one by one. If a worker dies, only the case
in flight is lost: Ray restarts the actor, possibly elsewhere, and retries the case.
"""

from __future__ import annotations

import queue
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from enable.cluster import RETRIES
from traces import UserError
from traces.subgraphs import define_all, definitions
from traces.values import Packed
from verify.cases.case import Case
from verify.judging.case_run import JudgedCase
from verify.judging.job import Job
from verify.judging.job_run import Run
from verify.judging.judge import Judge, JudgeClosed
from verify.judging.verdicts import VerdictStore
from verify.outcome import Verdict
from verify.platforms import DEVICE, Platform
from verify.sandbox.children import END_SECONDS


class RayJudge(Judge):
    """A judge with one worker per core of the cluster, or per GPU if kernels run on one."""

    def __init__(self, platform: Platform, store: VerdictStore, ray: Any, sandbox: str = "full") -> None:
        """Start the workers; `ray` is the connected module.

        Raises:
            UserError: The cluster lacks the GPU or CPU that the platform needs.
        """
        gpus = int(platform.mode == DEVICE)
        kind = "GPU" if gpus else "CPU"
        workers = int(ray.cluster_resources().get(kind, 0))
        if not workers:
            raise UserError(f"the Ray cluster has no {kind}, which platform {platform.name} needs; see: ray status")
        super().__init__(platform, store, workers, sandbox)
        self._ray = ray
        bench = ray.remote(_Bench).options(num_cpus=1, num_gpus=gpus, max_restarts=RETRIES, max_task_retries=RETRIES)
        self._benches: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._all = [bench.remote(platform, sandbox, self.sandbox) for _ in range(workers)]
        for actor in self._all:
            self._benches.put(actor)

    def judge(
        self, jobs: Iterable[Job], on_verdict: Callable[[Job, Verdict], None] = lambda job, verdict: None
    ) -> dict[tuple[str, str], Verdict]:
        """Judge as `Judge.judge`."""
        with redirect_stdout(sys.stderr):  # Ray prints to stdout if a worker is lost
            return super().judge(jobs, on_verdict)

    def close(self) -> None:
        """Close the judge and kill the workers."""
        super().close()
        closing = [bench.close.remote() for bench in self._all]
        self._ray.wait(closing, num_returns=len(closing), timeout=END_SECONDS)  # a busy worker does not answer
        for bench in self._all:
            self._ray.kill(bench)

    @contextmanager
    def running(self, job: Job) -> Iterator[Any]:
        """Yield the run of a job, as `Judge.running`."""
        carried = replace(job, cases=tuple(replace(case, load=_absent) for case in job.cases), needed=None)
        bench = self._benches.get()
        try:
            yield _FarRun(self._ray, bench, self._ray.put(carried), definitions(job.plan.overload))
        except self._ray.exceptions.RayActorError as error:
            if self._closed:
                raise JudgeClosed("the judge was closed while a case was judged") from error
            message = " ".join(str(error).split())[:200]
            raise UserError(
                f"a Ray worker was lost {RETRIES + 1} times ({message}); verdicts so far are kept"
            ) from error
        finally:
            self._benches.put(bench)


class _FarRun:
    """A run as `Run`, performed by an actor.

    `job` is Ray's reference to the job. `subgraphs` are the operators beside ATen that the actor must define.
    """

    def __init__(self, ray: Any, bench: Any, job: Any, subgraphs: list[Any]) -> None:
        self._ray, self._bench, self._job = ray, bench, job
        self._subgraphs = subgraphs

    def begin(self, case: Case) -> None:
        """Do nothing, because cases travel one by one."""

    def judge(self, case: Case) -> JudgedCase:
        """Send a case to the actor and return the judged case."""
        packed = case.load()
        packed.data = [None if d is None else bytes(d) for d in packed.data]
        reference = self._bench.judge.remote([self._job], replace(case, load=_Held(packed)), self._subgraphs)
        try:
            judged: JudgedCase = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from error
        return judged


@dataclass(frozen=True)
class _Held:
    """Loads a case that travels with its arguments."""

    packed: Packed

    def __call__(self) -> Packed:
        return self.packed


def _absent() -> Packed:
    """Raise an error: a travelling job's cases carry no arguments."""
    raise AssertionError("a case of a job that travelled is loaded where it came from")


class _Bench:
    """The actor: a judge that stores nothing, and the run of its current job."""

    def __init__(self, platform: Platform, sandbox: str, level: str) -> None:
        """Create the judge.

        Raises:
            UserError: This node's sandbox level differs from that of the process that stores the verdicts.
        """
        self._home = tempfile.TemporaryDirectory()
        home = Path(self._home.name)
        self._store = VerdictStore(home / "verdicts.sqlite")
        self._judge = Judge(platform, self._store, 1, sandbox, cache=home / "triton")
        if self._judge.sandbox != level:
            raise UserError(f"sandbox: a Ray worker has {self._judge.sandbox}, and here it is {level}; use like nodes")
        self._job: Any = None
        self._run: Run | None = None
        self._stack = ExitStack()

    def judge(self, job: list[Any], case: Case, subgraphs: list[Any]) -> JudgedCase:
        """Judge one case. `job` is a list with a reference, because Ray would resolve a bare one."""
        import ray

        define_all(subgraphs)
        if self._run is None or job[0] != self._job:
            self._stack.close()
            self._run, self._job = self._stack.enter_context(self._judge.running(ray.get(job[0]))), job[0]
        return replace(self._run.judge(case), answered=None)  # the caller does not use the raw results

    def close(self) -> None:
        """End the children and remove all files."""
        self._stack.close()
        self._judge.close()
        self._store.close()
        self._home.cleanup()
