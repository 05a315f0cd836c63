"""Suggest commands for a training that lacks usable kernels; the printed commands work as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capture.libraries import COMMON
from capture.targets import default_settings, describe_models, trace_name
from enable.options import PLATFORM, library_words
from enable.providers import words
from enable.serve.decisions import UNJUDGED
from enable.serve.entries import NOT_VERIFIED
from enable.train.training_run import Recipe
from enable.workspace import Workspace
from traces import TraceError, UserError
from traces.store import Trace
from verify import platforms


def remedy(  # noqa: PLR0913 - the call, and with what it is judged
    overload: str, reason: str, recipe: Recipe, chip: str, workspace: Workspace, base: Path | None
) -> str:
    """Return the commands after which the overload is served on `sim` or a chip.

    Args:
        overload: The overload.
        reason: The reason why it is not served, from `Server.reason`.
        recipe: The training.
        chip: The platform file of the device; empty for `sim`.
        workspace: The workspace.
        base: Directory of the base library, or None for the packaged one.
    """
    # recorded calls were judged, but this call differs from them
    judged = reason.startswith((f"{NOT_VERIFIED} ", UNJUDGED.format("")))
    name = None if judged else next(_calling(workspace, trace_name(recipe.model), overload), None)
    name, steps = (name, []) if name else _recording(recipe, chip or "sim", workspace)
    on_chip = ("--platform", chip) if chip else ()
    if reason.startswith(NOT_VERIFIED):
        steps.append(workspace.command("coverage", name, *on_chip, *library_words(base)))
        return f"verify it: {' && '.join(steps)}; or pass --unverified"
    if reason.startswith(UNJUDGED.format("")):
        steps.append(workspace.command("coverage", name, *on_chip, *library_words(base)))
        return f"have it judged: {' && '.join(steps)}; or leave out --only-judged"
    refine = ("refine", name, "--op", overload, *on_chip)
    steps.append(workspace.command(*refine, *words([overload]), *library_words(base)))
    return f"write one: {' && '.join(steps)}; or pass --fallback cpu"


def nothing_verified(recipe: Recipe, device: str, chip: str, workspace: Workspace, base: Path | None) -> str:
    """Return the commands if no kernel at all may serve; `chip` is the platform file of the device, if it has one."""
    name = trace_name(recipe.model)
    steps: list[str] = []
    if name not in workspace.trace_names():
        name, steps = _recording(recipe, chip or device, workspace)
    platform = chip or platforms.of_device(device)
    on = [] if platform == PLATFORM else ["--platform", platform]
    steps.append(workspace.command("coverage", name, *on, *library_words(base)))
    return f"no kernel is verified in {workspace.root}; verify them: {' && '.join(steps)}; or pass --unverified"


def on_an_accelerator(trace: Trace, workspace: Workspace) -> str:
    """Return the command that records an out-of-tree accelerator's calls in place of a CPU trace."""
    info = trace.manifest.get("info")
    model, settings = (info.get(n) if isinstance(info, dict) else None for n in ("model", "settings"))
    is_target = isinstance(model, str) and (":" in model or model in describe_models())
    if not isinstance(model, str) or not isinstance(settings, dict) or not is_target:
        return "the same program with its model and data on device sim (docs/capture.md)"
    defaults = _defaults(model)
    changed = {n: v for n, v in settings.items() if n != "device" and (n not in defaults or defaults[n] != v)}
    texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in changed.items()}
    return " && ".join(_recording(Recipe(model, texts), "sim", workspace)[1])


def _defaults(model: str) -> dict[str, Any]:
    """Return the known default settings of a capture target."""
    if model in describe_models():
        return default_settings(model)
    return {name: setting.default for name, setting in COMMON.items()} if ":" in model else {}


def _recording(recipe: Recipe, device: str, workspace: Workspace) -> tuple[str, list[str]]:
    """Return the name of a new trace for the model on a device, and the command that records it."""
    default_name = trace_name(recipe.model)
    name = _free(workspace, default_name, device)
    name_option = [] if name == default_name else ["--name", name]
    return name, [workspace.command("capture", *recipe.words(), "--device", device, *name_option)]


def _calling(workspace: Workspace, first: str, overload: str) -> Iterator[str]:
    """Yield the traces that contain a call of the overload; the trace named `first` comes first."""
    for name in sorted(workspace.trace_names(), key=lambda name: name != first):
        try:
            signatures = Trace.open(workspace.trace_path(name)).signatures.values()
        except (UserError, TraceError):
            continue
        if any(s.overload == overload and s.samples for s in signatures):
            yield name


def _free(workspace: Workspace, name: str, device: str) -> str:
    """Return an unused trace name."""
    existing = {path.name for path in workspace.traces.glob("*")}
    kind = Path(device).stem
    names = (name, f"{name}-{kind}", *(f"{name}-{kind}-{i}" for i in range(2, len(existing) + 3)))
    return next(n for n in names if workspace.trace_path(n).name not in existing)
