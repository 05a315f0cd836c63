"""Campaigns: the dialogs of many operators, on an engine, with a directory that any later run goes on from.

`<workspace>/campaigns/NAME/`: campaign.json (settings and operators, as they were when it began), dialogs/, and
results.jsonl, a line for each operator that has ended. An operator without a line is gone on with from its journal; one
that ended otherwise than by passing or for want of dialogs is tried again.
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
from enable.campaigns.work import Place, Work, options_of, place_of, price_of
from enable.progress import doing, say
from enable.providers import askable
from enable.refine.engine import Engine, Local
from enable.refine.holding import accepted
from enable.workspace import Workspace
from generate.campaign import Campaign
from generate.llm import load_provider
from generate.llm.budget import Budget, charge_runs
from traces import UserError, jsonable

DONE = ("PASSED", "OUT_OF_DIALOGS")  # exits after which an operator is not tried again
_ABORTS = 3  # of operators one after the other, from the same cause, after which no other is begun


def named(campaign: Campaign) -> Campaign:
    """With a name: its own, or one made of what it does, so that the same command finds the same campaign."""
    if campaign.name:
        return campaign
    digest = hashlib.sha256(json.dumps(campaign.of_work(), sort_keys=True).encode()).hexdigest()[:8]
    word = campaign.query.replace(" ", "-") or campaign.operators[0].replace("::", ".")
    return campaign.model_copy(update={"name": f"{word}-{digest}"})


def run_campaign(
    workspace: Workspace, base: Path | None, campaign: Campaign, words: Sequence[str], restart: bool = False
) -> dict[str, Any]:
    """What `enable generate --json` prints. words: after `enable`, that ask for the same.

    Raises UserError for what the user has to mend first, such as a campaign of that name with other settings.
    """
    place = place_of(workspace, campaign.name)
    if restart:
        place.put_aside()
    with Work(workspace, base, campaign) as work:
        told = _begun(place, work, campaign, words)
        results = {row["overload"]: row for row in place.results()}
        left = [o for o in told["operators"] if results.get(o, {}).get("exit") not in DONE]
        if left:
            for row in _work_on(work, left, told, words):
                place.add(row)
                results[row["overload"]] = row
    return summary(campaign.name, told, list(results.values()))


def _begun(place: Place, work: Work, campaign: Campaign, words: Sequence[str]) -> dict[str, Any]:
    told = place.begun()
    if told is None:
        provider = load_provider(campaign.model.provider, options_of(campaign))  # before anything is written
        chosen = choose(work.refinement, campaign)
        by_hand = shlex.join(["enable", *words, "--llm", "manual"])
        askable(provider, [c.operator.overload for c in chosen], by_hand)
        told = {
            "settings": campaign.of_work(),
            "operators": {c.operator.overload: c.category for c in chosen},
            "versions": {"torch": torch.__version__},
        }
        place.begin(told)
    if told["settings"] != campaign.of_work():
        changed = [k for k, v in campaign.of_work().items() if told["settings"].get(k) != v]
        raise UserError(
            f"campaign {campaign.name} was begun with other settings ({', '.join(changed)}); "
            f"name another with --name, or begin anew: {shlex.join(['enable', *words, '--restart'])}"
        )
    return told


def _work_on(work: Work, left: list[str], told: dict[str, Any], words: Sequence[str]) -> Iterator[dict[str, Any]]:
    budget = _budget(work)
    categories, counts = told["operators"], Counter[str]()
    aborted: list[str] = []
    with doing(work.campaign.name, len(left)) as telling:
        for held in _engine(work, budget, words).run(left):
            kernel = None
            if work.campaign.accept and held.passed:
                operator = work.refinement.operator(held.overload)
                held, kernel = accepted(work.refinement, operator, held, _model_name(work.campaign))
            counts[held.exit.lower()] += 1
            telling.step(", ".join(f"{n} {exit}" for exit, n in sorted(counts.items())))
            yield {**jsonable(held), "kernel": kernel, "category": categories[held.overload]}
            aborted = [*aborted, held.detail] if held.exit == "ABORTED" else []
            if len(aborted) >= _ABORTS and len(set(aborted[-_ABORTS:])) == 1:
                say(f"{_ABORTS} operators in a row ended alike; no other is begun")
                return


def _budget(work: Work) -> Budget:
    """What the campaign may use, with what earlier runs of it used taken off."""
    spending, model = work.campaign.budget, work.campaign.model
    budget = Budget(spending.calls, spending.tokens, spending.money)
    charge_runs(budget, work.place.dialogs, price_of(model.price), price_of(model.summarizer_price or model.price))
    return budget


def _engine(work: Work, budget: Budget, words: Sequence[str]) -> Engine:
    if work.campaign.engine == "ray":
        return Ray(work, budget, words)
    holder = work.holder(budget, words)
    return Local(lambda overload: holder.hold(work.refinement.operator(overload)), work.campaign.workers)


def _model_name(campaign: Campaign) -> str:
    return f"{campaign.model.provider} {campaign.model.name or ''}".rstrip()


def summary(name: str, told: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, Any]:
    """Counts by exit, and the operators."""
    rows = {row["overload"]: row for row in results}
    exits = Counter(rows[o]["exit"] if o in rows else "NOT_BEGUN" for o in told["operators"])
    return {
        "campaign": name,
        "total": len(told["operators"]),
        "exits": dict(exits.most_common()),
        "calls": sum(row["calls"] for row in results),
        "tokens": sum(row["tokens"] for row in results),
        "operators": results,
    }


def plan(workspace: Workspace, base: Path | None, campaign: Campaign) -> dict[str, Any]:
    """What a campaign would do: settings and operators. Asks no model and writes nothing."""
    with Work(workspace, base, campaign) as work:
        told = work.place.begun()
        names = list(told["operators"]) if told else [c.operator.overload for c in choose(work.refinement, campaign)]
        rows = [_planned(work, overload) for overload in names]
        done = {row["overload"]: row["exit"] for row in work.place.results()}
    settings = {**campaign.model_dump(mode="json"), "trace": trace_of(campaign)}
    return {"settings": settings, "operators": [{**row, "exit": done.get(row["overload"])} for row in rows]}


def _planned(work: Work, overload: str) -> dict[str, Any]:
    refinement = work.refinement
    operator = refinement.operator(overload)
    kernel = operator.replaces
    return {
        "overload": operator.overload,
        "category": refinement.users.categories.get(overload, NO_CATEGORY),
        "cases": refinement.count(operator),
        "kernel": os.fspath(kernel.path) if kernel else None,
    }
