"""Find the fusions of a trace's dataflow and keep them in the workspace."""

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
from traces.program import program_name, program_words
from traces.store import Trace
from verify.judging.standings import Standings


def fuse(workspace: Workspace, model: str, operator: str | None = None, library: Library | None = None) -> list[Fusion]:
    """Find the subgraphs of a trace and keep them beside those of other traces.

    Args:
        workspace: Workspace with the trace and the fusions.
        model: Trace name or path.
        operator: Only subgraphs with this operator among their steps, or None.
        library: Its kernels and functions decide which smaller subgraphs are searched; None means the workspace's.

    Returns:
        The fusions, sorted by the time that they save, largest first.

    Raises:
        UserError: The trace has no dataflow or no contents, or nothing can be fused.
    """
    trace = workspace.open_trace(model)
    flow = trace.dataflow
    saved_fusions = workspace.fusions()
    if operator is not None:
        _check_operator(flow, model, operator)
    all_occurrences = _occurrences(flow, library or workspace.library(None))
    occurrences = [o for o in all_occurrences if operator is None or _has(o, operator)]
    if not occurrences:
        raise UserError(_none_found(workspace, flow, model, operator))
    name = _name(workspace, trace, model)
    fusions = [
        replace(fusion, uses=(*fusion.uses, *(u for u in _uses_elsewhere(saved_fusions, fusion, name))))
        for fusion in _fusions(flow, occurrences, name)
    ]
    _check_contents(trace, fusions, name, model)
    for fusion in fusions:
        fusion.subgraph.define()
        fusion.save(workspace.fused)
    for overload in set() if operator else saved_fusions.keys() - {fusion.overload for fusion in fusions}:
        _forget(workspace, saved_fusions[overload], name)
    return sorted(fusions, key=lambda fusion: (-seconds(fusion), fusion.overload))


def _occurrences(flow: Dataflow, library: Library) -> list[Occurrence]:
    """Return all subgraphs. If one has no kernel and none can be composed, add smaller subgraphs of its steps."""
    occurrences: list[Occurrence] = []
    serviceable: list[Occurrence] = []
    served: dict[str, bool] = {}
    for kinds in PASSES:
        seen_calls = {occurrence.calls for occurrence in occurrences}
        candidates = [occurrence for occurrence in find(flow, kinds, serviceable) if occurrence.calls not in seen_calls]
        occurrences += candidates
        for occurrence in candidates:
            name = occurrence.subgraph.overload
            if name not in served:
                served[name] = occurrence.kind == "pointwise" or _has_kernel(flow, occurrence, library)
            serviceable += [occurrence] if served[name] else []
        if all(served[occurrence.subgraph.overload] for occurrence in candidates):
            break
    return occurrences


def _has_kernel(flow: Dataflow, occurrence: Occurrence, library: Library) -> bool:
    """Return True if the library has a kernel for the subgraph or one can be composed."""
    occurrence.subgraph.define()
    if library.match(occurrence.subgraph.overload) is not None:
        return True
    try:
        compose(occurrence.subgraph, [flow.values[value].shape for value in occurrence.inputs], library)
    except Uncomposable:
        return False
    return True


def seconds(fusion: Fusion) -> float:
    """Return the seconds that all uses of the fusion save on the nominal chip of coverage."""
    return fusion.nbytes / BANDWIDTH + fusion.launches * LAUNCH


def _check_operator(flow: Dataflow, model: str, operator: str) -> None:
    """Raise UserError if the trace does not call the operator, or no call to it can be fused."""
    called = dict.fromkeys(call.overload for call in flow.calls)
    matches = [overload for overload in called if means(operator, overload)]
    if not matches:
        suggestions = near(operator, list(called)) or ", ".join(list(called)[:4])
        raise UserError(f"{model} calls no {full(operator)}; it calls, among others, {suggestions}")
    reasons = barriers(flow)
    if all(overload in reasons for overload in matches):
        raise UserError(
            f"nothing with {matches[0]} can be fused: {reasons[matches[0]]}; "
            f"see all: {program_name()} fuse {model} --why"
        )


def _has(occurrence: Occurrence, operator: str) -> bool:
    """Return True if the operator is among the steps."""
    return any(means(operator, step.overload) for step in occurrence.subgraph.steps)


def _none_found(workspace: Workspace, flow: Dataflow, model: str, operator: str | None) -> str:
    """Return the message for a search without results."""
    condition = f" with {full(operator)}" if operator else ""
    why = workspace.command("fuse", model, "--why")
    return (
        f"{model}: no subgraph{condition} of its {len(flow.calls)} calls is worth fusing;"
        f" what cannot be part of one: {why}"
    )


def _name(workspace: Workspace, trace: Trace, model: str) -> str:
    """Return a name or path by which the trace can be opened from anywhere."""
    names_by_path = {workspace.trace_path(name).resolve(): name for name in workspace.trace_names()}
    return names_by_path.get(trace.path.resolve(), str(trace.path.resolve()))


def _fusions(flow: Dataflow, occurrences: list[Occurrence], trace: str) -> list[Fusion]:
    """Group the occurrences by subgraph, and drop those whose inputs were not stored."""
    by_name: dict[str, list[Occurrence]] = {}
    for occurrence in occurrences:
        by_name.setdefault(occurrence.subgraph.overload, []).append(occurrence)
    fusions = []
    for group in by_name.values():
        uses = tuple(use for o in group if (use := _use(flow, o, trace)) is not None)
        fusions.append(Fusion(group[0].subgraph, group[0].kind, uses))
    return [fusion for fusion in fusions if fusion.uses]


def _use(flow: Dataflow, occurrence: Occurrence, trace: str) -> RecordedUse | None:
    """Return the recorded use, or None if an input is in no stored call."""
    sources: dict[int, tuple[int, int]] = {}
    for i in occurrence.calls:
        call = flow.calls[i]
        for k, value in enumerate(call.reads if call.stored is not None else ()):
            assert call.stored is not None
            sources.setdefault(value, (call.stored, k))
    if any(value not in sources for value in occurrence.inputs):
        return None
    first = flow.calls[occurrence.calls[0]]
    return RecordedUse(
        trace=trace,
        phase=first.phase,
        module=first.module,
        calls=occurrence.calls,
        inputs=tuple(sources[value] for value in occurrence.inputs),
        shapes=tuple(flow.values[value].shape for value in occurrence.inputs),
        outputs=occurrence.outputs,
        nbytes=occurrence.nbytes,
        launches=occurrence.launches,
    )


def _uses_elsewhere(known: dict[str, Fusion], fusion: Fusion, trace: str) -> list[RecordedUse]:
    """Return the fusion's known uses in other traces."""
    return [u for u in known[fusion.overload].uses if u.trace != trace] if fusion.overload in known else []


def _forget(workspace: Workspace, fusion: Fusion, trace: str) -> None:
    """Remove a trace's uses from a fusion that its new recording no longer contains."""
    remaining = tuple(use for use in fusion.uses if use.trace != trace)
    if remaining and len(remaining) < len(fusion.uses):
        replace(fusion, uses=remaining).save(workspace.fused)
    elif not remaining:
        (workspace.fused / f"{fusion.overload.partition('::')[2]}.json").unlink()


def _check_contents(trace: Trace, fusions: list[Fusion], name: str, model: str) -> None:
    """Raise UserError if no input's contents were recorded, because then no kernel can be judged."""
    levels = {record.id: record.level for record in trace.calls()}
    calls = [call for fusion in fusions for use in fusion.uses if use.trace == name for call, _ in use.inputs]
    if not any(levels[call] in REPLAYABLE for call in calls):
        worst = Counter(levels[call] for call in calls).most_common(1)[0][0] if calls else "none"
        recorded_model = str(trace.manifest.get("info", {}).get("model", model))
        command = shlex.join([*program_words(), "capture", recorded_model, "--dataflow", "--force"])
        raise UserError(
            f"{model} holds no contents to judge fused kernels on (values: {worst}); record them: {command}"
        )


def kernel_state(library: Library, standings: Standings, fusion: Fusion) -> str:
    """Return "none", "made" or "verified"."""
    match = library.match(fusion.overload)
    if match is None:
        return "none"
    standing = standings[match.kernels, fusion.overload]
    verified = standing.passed and not standing.failed and not untried(match, standings)
    return "verified" if verified else "made"


def as_json(fusion: Fusion, kernel: str) -> dict[str, Any]:
    """Return the object that `--json` prints for a fusion."""
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
    """Return a table row for each fusion."""
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
    """Return a note about further shapes."""
    return f" and {len(fusion.shapes) - 1} more" if len(fusion.shapes) > 1 else ""
