"""Run `enable survey`: process all models in a table, and rank the overloads that they lack."""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enable.cover.coverage import percent
from enable.progress import show_progress
from enable.survey.entries import Survey
from enable.survey.kept import Kept
from enable.survey.stages import STAGES, Commands, ModelRow, survey_model
from enable.tables import share, table
from enable.workspace import Workspace
from verify import platforms

_SHOWN = 12  # maximum number of missing overloads in the text output


@dataclass(frozen=True)
class Surveyed:
    """A survey's results.

    Attributes:
        platform: Platform name or file.
        steps: Training steps per model.
        rows: One row per model, in the file's order.
    """

    platform: str
    steps: int
    rows: tuple[ModelRow, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return how many models were recorded, replayed, covered and trained."""
        rows = self.rows
        return {
            "models": len(rows),
            "recorded": sum(row.recorded for row in rows),
            "replayed": sum(row.replayed for row in rows),
            "covered": sum(row.covered for row in rows),
            "trained": sum(row.trained for row in rows),
        }

    @property
    def passed(self) -> bool:
        """Return True if every model was recorded, replayed and trained; coverage is not required."""
        return all(row.recorded and row.replayed and row.trained for row in self.rows)

    @property
    def lacking(self) -> dict[str, list[str]]:
        """Return the models that lack each overload; the overload that most models lack comes first."""
        models_by_overload: dict[str, list[str]] = defaultdict(list)
        for row in self.rows:
            for overload in row.missing:
                models_by_overload[overload].append(row.name)
        return dict(sorted(models_by_overload.items(), key=lambda item: (-len(item[1]), item[0])))

    def total(self, unit: str) -> dict[str, Any]:
        """Return totals over all models for `unit`: "overloads" (summed over the models) or "calls"."""
        whole = "compute" if unit == "overloads" else "total"
        sums: Counter[str] = Counter()
        for row in self.rows:
            if "coverage" in row.found:
                coverage = row.found["coverage"][unit]
                sums.update({whole: coverage[whole], "covered": coverage["covered"]})
        return {whole: sums[whole], "covered": sums["covered"], "percent": percent(sums[whole], sums["covered"])}

    def as_json(self) -> dict[str, Any]:
        """Return the object that `enable survey --json` prints."""
        return {
            "platform": self.platform,
            "steps": self.steps,
            "counts": self.counts,
            "overloads": self.total("overloads"),
            "calls": self.total("calls"),
            "lacking": self.lacking,
            "models": [_model(row) for row in self.rows],
            "passed": self.passed,
        }


def survey(asked: Survey, name: str, workspace: Workspace, platform: str, library: Path | None, jobs: int) -> Surveyed:
    """Process every model, and resume with the unfinished models after an interruption.

    Args:
        asked: Models and settings.
        name: Name for the directory with the traces, which has a subdirectory per platform.
        workspace: Workspace.
        platform: Platform name or file.
        library: Base library; None for the packaged one.
        jobs: Number of models to process at once.

    Raises:
        UserError: If the platform is unknown or invalid.
    """
    profile = platforms.load(platform)
    device = profile.device or "sim"
    how = {"device": device, "platform": platform, "steps": str(asked.steps), "library": str(library or "")}
    traces = workspace.root / "surveys" / name / profile.name
    workspace.create()
    traces.mkdir(parents=True, exist_ok=True)
    finished_rows, programs = Kept(traces / "ended.jsonl", how), Commands(workspace)
    rows = {model: finished_rows.row(model, entry.words()) for model, entry in asked.models.items()}
    remaining = [model for model, row in rows.items() if row is None]

    def look(model: str) -> str:
        words = asked.models[model].words()
        row = ModelRow(model, asked.models[model].target)
        rows[model] = survey_model(row, words, traces / f"{model}.trace", how, programs, work.now)
        if not programs.closed:
            finished_rows.add(words, row)
        return model

    with show_progress(f"survey {name}", len(remaining)) as work, ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(look, model) for model in remaining]):
                work.step(future.result())
        finally:
            programs.close()
            pool.shutdown(cancel_futures=True)
    finished_rows.forget({model: entry.words() for model, entry in asked.models.items()})
    return Surveyed(platform, asked.steps, tuple(row for row in rows.values() if row is not None))


def survey_rows(surveyed: Surveyed) -> list[dict[str, Any]]:
    """Return the table's rows."""
    return [
        {
            "model": row.name,
            "target": row.target,
            "overloads": _share(row, "overloads", "compute"),
            "calls": _share(row, "calls", "total"),
            "replayed": _replayed(row),
            "trained": _trained(row),
        }
        for row in surveyed.rows
    ]


def survey_tables(surveyed: Surveyed, again: str) -> str:
    """Return the results as text: table, errors with their commands, missing overloads, and totals.

    Args:
        surveyed: Results.
        again: Command that lists all missing overloads.
    """
    lines = [table(survey_rows(surveyed), ("target", "calls")), ""]
    for row in surveyed.rows:
        lines += [f"  {row.name}: {stage}: {said}\n      {row.typed[stage]}" for stage, said in row.errors.items()]
    lacking = list(surveyed.lacking.items())
    lines += [f"  lacking  {overload}: {', '.join(names)}" for overload, names in lacking[:_SHOWN]]
    if len(lacking) > _SHOWN:
        lines.append(f"  lacking  {len(lacking) - _SHOWN} overloads more")
    lines += [f"  next     {again}"] if lacking else []
    counts, overloads, calls = surveyed.counts, surveyed.total("overloads"), surveyed.total("calls")
    lines.append(
        f"{counts['models']} models on {surveyed.platform}:"
        f" {counts['recorded']} recorded, {counts['replayed']} replayed,"
        f" {counts['covered']} covered, {counts['trained']} train as on the CPU;"
        f" {overloads['covered']} of {overloads['compute']} overloads{share(overloads)},"
        f" {calls['covered']} of {calls['total']} calls{share(calls)}"
    )
    return "\n".join(lines)


def _share(row: ModelRow, unit: str, whole: str) -> str:
    """Return "COVERED of TOTAL" for a model; '-' without coverage."""
    if "coverage" not in row.found:
        return "-"
    coverage = row.found["coverage"][unit]
    return f"{coverage['covered']} of {coverage[whole]}"


def _replayed(row: ModelRow) -> str:
    """Return the table's text on the replay."""
    result = row.found.get("verify")
    if result is None:
        return "-"
    if not result["passed"]:
        return f"{len(result['mismatches'])} calls differ"
    return f"{result['exact']} calls bit-exact" + (f", {result['close']} close" if result["close"] else "")


def _trained(row: ModelRow) -> str:
    """Return the table's text on the training run."""
    result = row.found.get("run")
    if result is None:
        return "-"
    if result["stopped"]:
        return f"stopped: {result['stopped']}"
    if result["differing_steps"]:
        return f"differs from step {result['differing_steps'][0] + 1} on"
    return "as on the CPU" if row.trained else f"not compared: {result['not_compared']}"


def _model(row: ModelRow) -> dict[str, Any]:
    """Return a model's entry in the JSON output."""
    coverage, run, verify = (row.found.get(stage, {}) for stage in ("coverage", "run", "verify"))
    return {
        "name": row.name,
        "target": row.target,
        "recorded": row.recorded,
        "trace": row.found.get("capture", {}).get("trace"),
        "replayed": row.replayed,
        "exact": verify.get("exact"),
        "close": verify.get("close"),
        "overloads": coverage.get("overloads"),
        "calls": coverage.get("calls"),
        "missing": row.missing,
        "trained": row.trained,
        "stopped": run.get("stopped"),
        "fallbacks": sorted(run.get("fallbacks", {})),
        "errors": row.errors,
        "commands": {stage: row.typed[stage] for stage in STAGES if stage in row.typed},
        "seconds": row.seconds,
    }
