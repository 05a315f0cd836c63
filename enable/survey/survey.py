"""`enable survey`: all the models of a table, and what they lack together."""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from enable.cover.coverage import percent
from enable.progress import doing
from enable.survey.entries import Survey
from enable.survey.kept import Kept
from enable.survey.stages import STAGES, Commands, ModelRow, survey_model
from enable.tables import share, table
from enable.workspace import Workspace
from verify import platforms

_SHOWN = 12  # overloads that are lacking, in the text


@dataclass(frozen=True)
class Surveyed:
    """rows: a model each, in the order of the file."""

    platform: str
    steps: int
    rows: tuple[ModelRow, ...]

    @property
    def counts(self) -> dict[str, int]:
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
        """Whether every model came through every stage, covered or not."""
        return all(row.recorded and row.replayed and row.trained for row in self.rows)

    @property
    def lacking(self) -> dict[str, list[str]]:
        """By overload the models that lack it, what most lack first."""
        found: dict[str, list[str]] = defaultdict(list)
        for row in self.rows:
            for overload in row.missing:
                found[overload].append(row.name)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    def total(self, what: str) -> dict[str, Any]:
        """Of all models together: `overloads`, each model's counted, or `calls`."""
        whole = "compute" if what == "overloads" else "total"
        found: Counter[str] = Counter()
        for row in self.rows:
            if "coverage" in row.found:
                told = row.found["coverage"][what]
                found.update({whole: told[whole], "covered": told["covered"]})
        return {whole: found[whole], "covered": found["covered"], "percent": percent(found[whole], found["covered"])}

    def as_json(self) -> dict[str, Any]:
        """What `enable survey --json` prints."""
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
    """Look at every model, `jobs` at once. name: of the directory of the traces, of which each platform has one.

    A survey that was interrupted goes on with the models that it had not ended. Raises UserError for the platform.
    """
    profile = platforms.load(platform)
    device = profile.device or "sim"
    how = {"device": device, "platform": platform, "steps": str(asked.steps), "library": str(library or "")}
    traces = workspace.root / "surveys" / name / profile.name
    workspace.create()
    traces.mkdir(parents=True, exist_ok=True)
    kept, programs = Kept(traces / "ended.jsonl", how), Commands(workspace)
    rows = {model: kept.row(model, entry.words()) for model, entry in asked.models.items()}
    left = [model for model, row in rows.items() if row is None]

    def look(model: str) -> str:
        words = asked.models[model].words()
        row = ModelRow(model, asked.models[model].target)
        rows[model] = survey_model(row, words, traces / f"{model}.trace", how, programs, work.now)
        if not programs.closed:
            kept.add(words, row)
        return model

    with doing(f"survey {name}", len(left)) as work, ThreadPoolExecutor(jobs) as pool:
        try:
            for future in as_completed([pool.submit(look, model) for model in left]):
                work.step(future.result())
        finally:
            programs.close()
            pool.shutdown(cancel_futures=True)
    kept.forget({model: entry.words() for model, entry in asked.models.items()})
    return Surveyed(platform, asked.steps, tuple(row for row in rows.values() if row is not None))


def survey_rows(found: Surveyed) -> list[dict[str, Any]]:
    """The table's rows."""
    return [
        {
            "model": row.name,
            "target": row.target,
            "overloads": _share(row, "overloads", "compute"),
            "calls": _share(row, "calls", "total"),
            "replayed": _replayed(row),
            "trained": _trained(row),
        }
        for row in found.rows
    ]


def survey_tables(found: Surveyed, again: str) -> str:
    """A row a model, what failed and how to see it, what is lacking, and the totals. again: what lists the lacking."""
    lines = [table(survey_rows(found)), ""]
    for row in found.rows:
        lines += [f"  {row.name}: {stage}: {said}\n      {row.typed[stage]}" for stage, said in row.errors.items()]
    lacking = list(found.lacking.items())
    lines += [f"  lacking  {overload}: {', '.join(names)}" for overload, names in lacking[:_SHOWN]]
    if len(lacking) > _SHOWN:
        lines.append(f"  lacking  {len(lacking) - _SHOWN} overloads more")
    lines += [f"  next     {again}"] if lacking else []
    counts, overloads, calls = found.counts, found.total("overloads"), found.total("calls")
    lines.append(
        f"{counts['models']} models on {found.platform}: {counts['recorded']} recorded, {counts['replayed']} replayed,"
        f" {counts['covered']} covered, {counts['trained']} train as on the CPU;"
        f" {overloads['covered']} of {overloads['compute']} overloads{share(overloads)},"
        f" {calls['covered']} of {calls['total']} calls{share(calls)}"
    )
    return "\n".join(lines)


def _share(row: ModelRow, what: str, whole: str) -> str:
    if "coverage" not in row.found:
        return "-"
    told = row.found["coverage"][what]
    return f"{told['covered']} of {told[whole]}"


def _replayed(row: ModelRow) -> str:
    found = row.found.get("verify")
    if found is None:
        return "-"
    if not found["passed"]:
        return f"{len(found['mismatches'])} calls differ"
    return f"{found['exact']} calls bit-exact" + (f", {found['close']} close" if found["close"] else "")


def _trained(row: ModelRow) -> str:
    found = row.found.get("run")
    if found is None:
        return "-"
    if found["stopped"]:
        return f"stopped: {found['stopped']}"
    if found["differing_steps"]:
        return f"differs from step {found['differing_steps'][0] + 1} on"
    return "as on the CPU" if row.trained else f"not compared: {found['not_compared']}"


def _model(row: ModelRow) -> dict[str, Any]:
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
