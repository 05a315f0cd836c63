"""Run dialogs on a Ray cluster: one task per operator, with its journal in the workspace.

Every node needs access to the workspace. If a worker is lost, Ray restarts its task on another worker, and the task
resumes from the journal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from enable.campaigns.work import Work
from enable.cluster import RETRIES, connected
from enable.refine.holding import HeldDialogs, Holder, failed
from enable.workspace import Workspace
from generate.campaign import parse
from generate.llm.budget import Budget
from traces import UserError


class Ray:
    """An engine that runs one Ray task per operator.

    At most `campaign.workers` tasks run at once. Each task takes one core, and on a GPU platform one GPU.
    """

    def __init__(self, work: Work, budget: Budget, words: Sequence[str]) -> None:
        """Connect to the cluster.

        Args:
            work: Cases, judge and models of the campaign.
            budget: Budget; tasks receive the amount that remains when they start.
            words: Words after `enable` that repeat the campaign.

        Raises:
            UserError: If Ray is not installed or the cluster cannot be reached.
        """
        campaign, session = work.campaign, work.session
        ray = connected(campaign.address, campaign.workers)
        self._ray, self._budget, self._workers = ray, budget, campaign.workers
        base = os.path.abspath(session.base) if session.base else None
        root = os.path.abspath(session.workspace.root)
        self._task_arguments = (root, base, campaign.model_dump_json(), tuple(words))
        gpus = 0 if session.platform.name == "sim" else 1
        self._task = ray.remote(_hold).options(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)

    def run(self, overloads: Sequence[str]) -> Iterator[HeldDialogs]:
        """Run the dialogs, and yield results in the order of completion.

        If the caller leaves the iterator early, running tasks are cancelled.
        """
        waiting = list(overloads)
        running: dict[Any, str] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._workers:
                    overload = waiting.pop(0)
                    running[self._task.remote(*self._task_arguments, overload, self._budget.left())] = overload
                with redirect_stdout(sys.stderr):  # Ray prints messages about lost workers to stdout
                    (done,), _ = self._ray.wait(list(running), num_returns=1)
                overload = running.pop(done)
                result = self._result(done, overload)
                self._budget.charge(result.tokens, 0, calls=result.calls)
                yield result
        finally:
            for task in running:
                self._ray.cancel(task, force=True)

    def _result(self, done: Any, overload: str) -> HeldDialogs:
        """Return a task's result; a UserError or a crashed worker becomes an aborted operator."""
        try:
            result: HeldDialogs = self._ray.get(done)
            return result
        except self._ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            if isinstance(cause, UserError):
                return failed(overload, cause)
            raise
        except self._ray.exceptions.WorkerCrashedError as error:
            return failed(overload, error)


def _hold(
    root: str, base: str | None, settings: str, words: tuple[str, ...], overload: str, left: dict[str, Any]
) -> HeldDialogs:
    """Run one operator's dialogs in a worker process, with the remaining budget."""
    work = _work(root, base, settings)
    work.session.reload_library()
    holder: Holder = work.holder(Budget(**left), words)
    return replace(holder.hold(work.refinement.operator(overload)), tried=None)  # a trial is not sent between processes


@cache
def _work(root: str, base: str | None, settings: str) -> Work:
    """Return the worker process's cases, judge and models; they are created once and end with the process."""
    work = Work(Workspace(Path(root)), Path(base) if base else None, parse(json.loads(settings), "campaign"), tests=1)
    work.__enter__()
    return work
