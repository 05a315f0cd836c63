"""Dialogs on a Ray cluster: one task an operator, its journal in the workspace, which every node has to see.

Nothing is lost with a worker: Ray begins its task again on another, and that goes on from the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from enable.holding import Held, Holder, failed
from enable.workspace import Workspace
from generate.campaign import Campaign, parse
from generate.llm.budget import Budget
from traces import UserError

if TYPE_CHECKING:
    from enable.campaign import Work

RETRIES = 3  # of an operator whose worker died


class Ray:
    """As many tasks at once as the campaign has workers; each takes a core, and on a GPU platform a GPU."""

    def __init__(self, work: Work, budget: Budget, words: Sequence[str]) -> None:
        """Raises UserError where Ray is not installed or the cluster cannot be reached."""
        try:
            import ray
        except ImportError:
            raise UserError("the ray engine needs Ray: pip install 'enablekit[ray]'") from None
        self._ray, self._budget, self._workers = ray, budget, work.campaign.workers
        campaign, session = work.campaign, work.session
        base = os.path.abspath(session.base) if session.base else None
        root = os.path.abspath(session.workspace.root)
        self._given = (root, base, campaign.model_dump_json(), tuple(words))
        gpus = 0 if session.platform.name == "sim" else 1
        self._task = ray.remote(_hold).options(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)
        if not ray.is_initialized():
            _connect(ray, campaign)

    def run(self, overloads: Sequence[str]) -> Iterator[Held]:
        waiting = list(overloads)
        running: dict[Any, str] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self._workers:
                    overload = waiting.pop(0)
                    running[self._task.remote(*self._given, overload, self._budget.left())] = overload
                (done,), _ = self._ray.wait(list(running), num_returns=1)
                overload = running.pop(done)
                held = self._result(done, overload)
                self._budget.charge(held.tokens, 0, calls=held.calls)
                yield held
        finally:
            for task in running:
                self._ray.cancel(task, force=True)

    def _result(self, done: Any, overload: str) -> Held:
        try:
            held: Held = self._ray.get(done)
            return held
        except self._ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            if isinstance(cause, UserError):
                return failed(overload, cause)
            raise
        except self._ray.exceptions.WorkerCrashedError as error:
            return failed(overload, error)


def _connect(ray: Any, campaign: Campaign) -> None:
    where = {"address": campaign.address} if campaign.address else {"num_cpus": campaign.workers}
    try:
        ray.init(**where, include_dashboard=False, log_to_driver=True, logging_level="WARNING")
    except (ConnectionError, ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())[:200]
        raise UserError(f"address {campaign.address!r}: no Ray cluster ({told}); see: ray status") from error


def _hold(
    root: str, base: str | None, settings: str, words: tuple[str, ...], overload: str, left: dict[str, Any]
) -> Held:
    """In a worker: hold one operator's dialogs, with what the budget still has."""
    work = _work(root, base, settings)
    work.session.reload_library()
    holder: Holder = work.holder(Budget(**left), words)
    return holder.hold(work.refinement.operator(overload))


@cache
def _work(root: str, base: str | None, settings: str) -> Work:
    """Once a worker process, which ends with its children."""
    import json

    from enable.campaign import Work

    work = Work(Workspace(Path(root)), Path(base) if base else None, parse(json.loads(settings), "campaign"), tests=1)
    work.__enter__()
    return work
