"""From the dataflow of a trace to the fusions of a workspace."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from enable.cover.cost import BANDWIDTH, LAUNCH
from enable.naming import full, means, near
from enable.subgraphs import Fusion, RecordedUse
from enable.trust import untried
from enable.workspace import Workspace
from generate.kernel_library import Library
from generate.subgraphs.composing import Uncomposable, compose
from generate.subgraphs.finding import PASSES, Occurrence, barriers, find
from traces import UserError
from traces.contents import REPLAYABLE
from traces.dataflow import Dataflow
from traces.store import Trace
from verify.judging.standings import Standings


def fuse(workspace: Workspace, model: str, operator: str | None = None, library: Library | None = None) -> list[Fusion]:
    """Find the subgraphs of a trace, and keep them beside those of other traces; those that save most first.

    operator: only those with this one among their steps. library: whose kernels and functions decide what else is
    looked for, the workspace's if it is None. Raises UserError where there is no dataflow, no contents, or nothing to
    be found.
    """
    trace = workspace.open_trace(model)
    flow = trace.dataflow
    known = workspace.fusions()
    if operator is not None:
        _check_operator(flow, model, operator)
    every = _found(flow, library or workspace.library(None))
    occurrences = [o for o in every if operator is None or _has(o, operator)]
    if not occurrences:
        raise UserError(_none_found(workspace, flow, model, operator))
    name = _name(workspace, trace, model)
    found = [
        replace(fusion, uses=(*fusion.uses, *(u for u in _uses_elsewhere(known, fusion, name))))
        for fusion in _fusions(flow, occurrences, name)
    ]
    _check_contents(trace, found, name, model)
    for fusion in found:
        fusion.subgraph.define()
        fusion.save(workspace.fused)
    for overload in set() if operator else known.keys() - {fusion.overload for fusion in found}:
        _forget(workspace, known[overload], name)
    return sorted(found, key=lambda fusion: (-seconds(fusion), fusion.overload))


def _found(flow: Dataflow, library: Library) -> list[Occurrence]:
    """All subgraphs; and where one has no kernel and none can be composed, what can be fused of its steps."""
    found: list[Occurrence] = []
    taken: list[Occurrence] = []
    served: dict[str, bool] = {}
    for kinds in PASSES:
        known = {occurrence.calls for occurrence in found}
        new = [occurrence for occurrence in find(flow, kinds, taken) if occurrence.calls not in known]
        found += new
        for occurrence in new:
            name = occurrence.subgraph.overload
            if name not in served:
                served[name] = occurrence.kind == "pointwise" or _has_kernel(flow, occurrence, library)
            taken += [occurrence] if served[name] else []
        if all(served[occurrence.subgraph.overload] for occurrence in new):
            break
    return found


def _has_kernel(flow: Dataflow, occurrence: Occurrence, library: Library) -> bool:
    occurrence.subgraph.define()
    if library.match(occurrence.subgraph.overload) is not None:
        return True
    try:
        compose(occurrence.subgraph, [flow.values[value].shape for value in occurrence.inputs], library)
    except Uncomposable:
        return False
    return True


def seconds(fusion: Fusion) -> float:
    """That all uses of it save together on the nominal chip of coverage."""
    return fusion.nbytes / BANDWIDTH + fusion.launches * LAUNCH


def _check_operator(flow: Dataflow, model: str, operator: str) -> None:
    called = dict.fromkeys(call.overload for call in flow.calls)
    meant = [overload for overload in called if means(operator, overload)]
    if not meant:
        like = near(operator, list(called)) or ", ".join(list(called)[:4])
        raise UserError(f"{model} calls no {full(operator)}; it calls, among others, {like}")
    reasons = barriers(flow)
    if all(overload in reasons for overload in meant):
        raise UserError(
            f"nothing with {meant[0]} can be fused: {reasons[meant[0]]}; see all: enable fuse {model} --why"
        )


def _has(occurrence: Occurrence, operator: str) -> bool:
    return any(means(operator, step.overload) for step in occurrence.subgraph.steps)


def _none_found(workspace: Workspace, flow: Dataflow, model: str, operator: str | None) -> str:
    what = f" with {full(operator)}" if operator else ""
    why = workspace.command("fuse", model, "--why")
    return (
        f"{model}: no subgraph{what} of its {len(flow.calls)} calls is worth fusing; what cannot be part of one: {why}"
    )


def _name(workspace: Workspace, trace: Trace, model: str) -> str:
    """By which the trace is opened again, from anywhere."""
    known = {workspace.trace_path(name).resolve(): name for name in workspace.trace_names()}
    return known.get(trace.path.resolve(), str(trace.path.resolve()))


def _fusions(flow: Dataflow, occurrences: list[Occurrence], trace: str) -> list[Fusion]:
    by_name: dict[str, list[Occurrence]] = {}
    for occurrence in occurrences:
        by_name.setdefault(occurrence.subgraph.overload, []).append(occurrence)
    made = []
    for several in by_name.values():
        uses = tuple(use for o in several if (use := _use(flow, o, trace)) is not None)
        made.append(Fusion(several[0].subgraph, several[0].kind, uses))
    return [fusion for fusion in made if fusion.uses]


def _use(flow: Dataflow, occurrence: Occurrence, trace: str) -> RecordedUse | None:
    """None where an input is in no stored call."""
    places: dict[int, tuple[int, int]] = {}
    for i in occurrence.calls:
        call = flow.calls[i]
        for k, value in enumerate(call.reads if call.stored is not None else ()):
            assert call.stored is not None
            places.setdefault(value, (call.stored, k))
    if any(value not in places for value in occurrence.inputs):
        return None
    first = flow.calls[occurrence.calls[0]]
    return RecordedUse(
        trace=trace,
        phase=first.phase,
        module=first.module,
        calls=occurrence.calls,
        inputs=tuple(places[value] for value in occurrence.inputs),
        shapes=tuple(flow.values[value].shape for value in occurrence.inputs),
        outputs=occurrence.outputs,
        nbytes=occurrence.nbytes,
        launches=occurrence.launches,
    )


def _uses_elsewhere(known: dict[str, Fusion], fusion: Fusion, trace: str) -> list[RecordedUse]:
    return [u for u in known[fusion.overload].uses if u.trace != trace] if fusion.overload in known else []


def _forget(workspace: Workspace, fusion: Fusion, trace: str) -> None:
    """A trace that was recorded anew holds a subgraph no more."""
    others = tuple(use for use in fusion.uses if use.trace != trace)
    if others and len(others) < len(fusion.uses):
        replace(fusion, uses=others).save(workspace.fused)
    elif not others:
        (workspace.fused / f"{fusion.overload.partition('::')[2]}.json").unlink()


def _check_contents(trace: Trace, found: list[Fusion], name: str, model: str) -> None:
    """Raises UserError where nothing of any input was recorded, so that no kernel could ever be judged."""
    levels = {record.id: record.level for record in trace.calls()}
    calls = [call for fusion in found for use in fusion.uses if use.trace == name for call, _ in use.inputs]
    if not any(levels[call] in REPLAYABLE for call in calls):
        worst = Counter(levels[call] for call in calls).most_common(1)[0][0] if calls else "none"
        given = str(trace.manifest.get("info", {}).get("model", model))
        again = shlex.join(["enable", "capture", given, "--dataflow", "--force"])
        raise UserError(f"{model} holds no contents to judge fused kernels on (values: {worst}); record them: {again}")


def kernel_state(library: Library, standings: Standings, fusion: Fusion) -> str:
    """none, made, or verified."""
    match = library.match(fusion.overload)
    if match is None:
        return "none"
    standing = standings[match.kernels, fusion.overload]
    verified = standing.passed and not standing.failed and not untried(match, standings)
    return "verified" if verified else "made"


def as_json(fusion: Fusion, kernel: str) -> dict[str, Any]:
    """What `--json` tells of one."""
    return {
        "overload": fusion.overload,
        "kind": fusion.kind,
        "schema": fusion.subgraph.schema,
        "steps": [step.overload for step in fusion.subgraph.steps],
        "shapes": fusion.shapes,
        "uses": len(fusion.uses),
        "nbytes": fusion.nbytes,
        "launches": fusion.launches,
        "seconds": seconds(fusion),
        "kernel": kernel,
        "traces": sorted({use.trace for use in fusion.uses}),
    }


Told = Callable[[Fusion], str]


def rows(fusions: list[Fusion], kernel: Told) -> list[dict[str, Any]]:
    """A row of a table for each."""
    return [
        {
            "fusion": fusion.overload,
            "kind": fusion.kind,
            "steps": len(fusion.subgraph.steps),
            "uses": len(fusion.uses),
            "MB saved": round(fusion.nbytes / 1e6, 2),
            "launches saved": fusion.launches,
            "kernel": kernel(fusion),
            "shapes": " ".join("x".join(map(str, shape)) or "()" for shape in fusion.shapes[0]) + _more(fusion),
        }
        for fusion in fusions
    ]


def _more(fusion: Fusion) -> str:
    return f" and {len(fusion.shapes) - 1} more" if len(fusion.shapes) > 1 else ""
