"""What to type where a training on `sim` lacks a kernel that may serve: commands that work as they are printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from capture.targets import trace_name
from enable.options import library_words
from enable.providers import words
from enable.serving import NOT_VERIFIED
from enable.training_run import Recipe
from enable.workspace import Workspace
from traces import TraceError, UserError
from traces.store import Trace


def remedy(overload: str, reason: str, recipe: Recipe, workspace: Workspace, base: Path | None) -> str:
    """How to have the overload served. reason: why it is not, as `Server.reason` puts it. base: as of `run`."""
    has_kernel, library = reason.startswith(NOT_VERIFIED), library_words(base)
    some = reason.startswith(f"{NOT_VERIFIED} ")  # of other dtypes: what is recorded has been judged
    name = None if some else next(_calling(workspace, trace_name(recipe.model), overload), None)
    steps = []
    if name is None:
        name = _free(workspace, trace_name(recipe.model))
        named = [] if name == trace_name(recipe.model) else ["--name", name]
        steps = [workspace.command("capture", *recipe.words(), "--device", "sim", *named)]
    if not has_kernel:
        steps.append(workspace.command("refine", name, "--op", overload, *words([overload]), *library))
        return f"write one: {' && '.join(steps)}; or pass --fallback cpu"
    steps.append(workspace.command("coverage", name, *library))
    return f"verify it: {' && '.join(steps)}; or pass --unverified"


def _calling(workspace: Workspace, first: str, overload: str) -> Iterator[str]:
    """The traces that hold a call of the overload, that of this name first."""
    for name in sorted(workspace.trace_names(), key=lambda name: name != first):
        try:
            signatures = Trace.open(workspace.trace_path(name)).signatures.values()
        except (UserError, TraceError):
            continue
        if any(s.overload == overload and s.samples for s in signatures):
            yield name


def _free(workspace: Workspace, name: str) -> str:
    """A name that no trace has."""
    taken = {path.name for path in workspace.traces.glob("*")}
    names = (name, f"{name}-sim", *(f"{name}-sim-{i}" for i in range(2, len(taken) + 3)))
    return next(n for n in names if workspace.trace_path(n).name not in taken)
