"""Run campaigns: the dialogs of many operators on an engine, with a directory from which a later run can resume.

The directory `<workspace>/campaigns/NAME/` contains campaign.json (settings and operators, as they were at the start),
dialogs/, and results.jsonl with one line for each operator that has ended. An operator without a line is resumed from
its journal. An operator is retried unless it passed or ran out of dialogs.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from enable.campaigns.engine_ray import Ray
from enable.campaigns.selection import NO_CATEGORY, choose, trace_of
from enable.campaigns.work import CampaignDirectory, Work, directory_of, options_of, price_of
from enable.progress import say, show_progress
from enable.providers import askable
from enable.refine.engine import Engine, Local
from enable.refine.holding import accepted
from enable.workspace import Workspace
from generate.campaign import Campaign
from generate.llm import load_provider
from generate.llm.budget import Budget, charge_runs
from traces import UserError, jsonable
from traces.program import program_words

DONE = ("PASSED", "OUT_OF_DIALOGS")  # exits after which an operator is not tried again
_ABORTS = 3  # the campaign stops after this many consecutive operators were aborted for the same cause


def named(campaign: Campaign) -> Campaign:
    """Return the campaign with a name: its own, or one derived from its work.

    The derived name contains a hash, so the same command finds the same campaign again.
    """
    if campaign.name:
        return campaign
    digest = hashlib.sha256(json.dumps(campaign.of_work(), sort_keys=True).encode()).hexdigest()[:8]
    word = campaign.query.replace(" ", "-") or campaign.operators[0].replace("::", ".")
    return campaign.model_copy(update={"name": f"{word}-{digest}"})


def run_campaign(
    workspace: Workspace, base: Path | None, campaign: Campaign, words: Sequence[str], restart: bool = False
) -> dict[str, Any]:
    """Run or resume a campaign, and return the object that `enable generate --json` prints.

    Args:
        workspace: Workspace with traces and campaigns.
        base: Base library; None for the packaged one.
        campaign: Settings; the name must be set.
        words: Words after `enable` that repeat the command.
        restart: True to rename the old directory and begin a new campaign.

    Raises:
        UserError: If the user has to fix something first, for example if a campaign with this name has other settings.
    """
    directory = directory_of(workspace, campaign.name)
    if restart:
        directory.put_aside()
    with Work(workspace, base, campaign) as work:
        state = _begun(directory, work, campaign, words)
        results = {row["overload"]: row for row in directory.results()}
        remaining = [o for o in state["operators"] if results.get(o, {}).get("exit") not in DONE]
        if remaining:
            for row in _work_on(work, remaining, state, words):
                directory.add(row)
                results[row["overload"]] = row
    return summary(campaign.name, state, list(results.values()))


def _begun(directory: CampaignDirectory, work: Work, campaign: Campaign, words: Sequence[str]) -> dict[str, Any]:
    """Return the content of campaign.json; create it if the campaign is new.

    Raises:
        UserError: If the settings differ from those at the start.
    """
    state = directory.begun()
    if state is None:
        provider = load_provider(campaign.model.provider, options_of(campaign))  # before anything is written
        chosen = choose(work.refinement, campaign)
        by_hand = shlex.join([*program_words(), *words, "--llm", "manual"])
        askable(provider, [c.operator.overload for c in chosen], by_hand)
        state = {
            "settings": campaign.of_work(),
            "operators": {c.operator.overload: c.category for c in chosen},
            "versions": {"torch": torch.__version__},
        }
        directory.begin(state)
    if state["settings"] != campaign.of_work():
        changed = [k for k, v in campaign.of_work().items() if state["settings"].get(k) != v]
        raise UserError(
            f"campaign {campaign.name} was begun with other settings ({', '.join(changed)}); "
            f"name another with --name, or begin anew: {shlex.join([*program_words(), *words, '--restart'])}"
        )
    return state


def _work_on(work: Work, left: list[str], state: dict[str, Any], words: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Run the dialogs of the remaining operators, and yield a result row for each."""
    budget = _budget(work)
    categories, counts = state["operators"], Counter[str]()
    aborted: list[str] = []
    with show_progress(work.campaign.name, len(left)) as progress:
        for result in _engine(work, budget, words).run(left):
            kernel = None
            if work.campaign.accept and result.passed:
                operator = work.refinement.operator(result.overload)
                result, kernel = accepted(work.refinement, operator, result, _model_name(work.campaign))
            counts[result.exit.lower()] += 1
            progress.step(", ".join(f"{n} {exit}" for exit, n in sorted(counts.items())))
            yield {**jsonable(result), "kernel": kernel, "category": categories[result.overload]}
            aborted = [*aborted, result.detail] if result.exit == "ABORTED" else []
            if len(aborted) >= _ABORTS and len(set(aborted[-_ABORTS:])) == 1:
                say(f"{_ABORTS} operators in a row ended alike; no other is begun")
                return


def _budget(work: Work) -> Budget:
    """Return the campaign's budget, less the amounts that its earlier runs used."""
    spending, model = work.campaign.budget, work.campaign.model
    budget = Budget(spending.calls, spending.tokens, spending.money)
    charge_runs(budget, work.directory.dialogs, price_of(model.price), price_of(model.summarizer_price or model.price))
    return budget


def _engine(work: Work, budget: Budget, words: Sequence[str]) -> Engine:
    """Return the engine: a Ray cluster, or threads in this process."""
    if work.campaign.engine == "ray":
        return Ray(work, budget, words)
    holder = work.holder(budget, words)
    return Local(lambda overload: holder.hold(work.refinement.operator(overload)), work.campaign.workers)


def _model_name(campaign: Campaign) -> str:
    """Return the provider and the model name, for the provenance."""
    return f"{campaign.model.provider} {campaign.model.name or ''}".rstrip()


def summary(name: str, state: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return counts by exit, totals, and the result rows."""
    rows = {row["overload"]: row for row in results}
    exits = Counter(rows[o]["exit"] if o in rows else "NOT_BEGUN" for o in state["operators"])
    return {
        "campaign": name,
        "total": len(state["operators"]),
        "exits": dict(exits.most_common()),
        "calls": sum(row["calls"] for row in results),
        "tokens": sum(row["tokens"] for row in results),
        "operators": results,
    }


def plan(workspace: Workspace, base: Path | None, campaign: Campaign) -> dict[str, Any]:
    """Return the settings and operators of a campaign, without a call to a model and without writing anything."""
    with Work(workspace, base, campaign) as work:
        state = work.directory.begun()
        names = list(state["operators"]) if state else [c.operator.overload for c in choose(work.refinement, campaign)]
        rows = [_planned(work, overload) for overload in names]
        done = {row["overload"]: row["exit"] for row in work.directory.results()}
    settings = {**campaign.model_dump(mode="json"), "trace": trace_of(campaign)}
    return {"settings": settings, "operators": [{**row, "exit": done.get(row["overload"])} for row in rows]}


def _planned(work: Work, overload: str) -> dict[str, Any]:
    """Return the plan's row for an operator."""
    refinement = work.refinement
    operator = refinement.operator(overload)
    kernel = operator.replaces
    return {
        "overload": operator.overload,
        "category": refinement.users.categories.get(overload, NO_CATEGORY),
        "cases": refinement.count(operator),
        "kernel": os.fspath(kernel.path) if kernel else None,
    }
