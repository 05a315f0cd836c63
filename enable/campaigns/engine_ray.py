"""Dialogs on a Ray cluster: one task an operator, its journal in the workspace, which every node has to see.

Nothing is lost with a worker: Ray begins its task again on another, and that goes on from the journal.
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
    """As many tasks at once as the campaign has workers; each takes a core, and on a GPU platform a GPU."""

    def __init__(self, work: Work, budget: Budget, words: Sequence[str]) -> None:
        """Raises UserError where Ray is not installed or the cluster cannot be reached."""
        campaign, session = work.campaign, work.session
        ray = connected(campaign.address, campaign.workers)
        self._ray, self._budget, self._workers = ray, budget, campaign.workers
        base = os.path.abspath(session.base) if session.base else None
        root = os.path.abspath(session.workspace.root)
        self._given = (root, base, campaign.model_dump_json(), tuple(words))
        gpus = 0 if session.platform.name == "sim" else 1
        self._task = ray.remote(_hold).options(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)

    def run(self, overloads: Sequence[str]) -> Iterator[HeldDialogs]:
        waiting = list(overloads)
        running: dict[Any, str] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._workers:
                    overload = waiting.pop(0)
                    running[self._task.remote(*self._given, overload, self._budget.left())] = overload
                with redirect_stdout(sys.stderr):  # where Ray prints that a worker was lost
                    (done,), _ = self._ray.wait(list(running), num_returns=1)
                overload = running.pop(done)
                held = self._result(done, overload)
                self._budget.charge(held.tokens, 0, calls=held.calls)
                yield held
        finally:
            for task in running:
                self._ray.cancel(task, force=True)

    def _result(self, done: Any, overload: str) -> HeldDialogs:
        try:
            held: HeldDialogs = self._ray.get(done)
            return held
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
    """In a worker: hold one operator's dialogs, with what the budget still has."""
    work = _work(root, base, settings)
    work.session.reload_library()
    holder: Holder = work.holder(Budget(**left), words)
    return replace(holder.hold(work.refinement.operator(overload)), tried=None)  # a trial does not travel


@cache
def _work(root: str, base: str | None, settings: str) -> Work:
    """Once a worker process, which ends with its children."""
    work = Work(Workspace(Path(root)), Path(base) if base else None, parse(json.loads(settings), "campaign"), tests=1)
    work.__enter__()
    return work
