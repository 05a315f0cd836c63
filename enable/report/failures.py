"""Judge failing cases once more to draw a picture of the positions at which the result differs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from enable.cover.coverage import Row, cases_by_overload
from enable.cover.session import Session
from traces.values import Packed
from verify.cases.case import Case, Expected
from verify.cases.packed import contents
from verify.judging.dialect import refusal
from verify.judging.judge import Job

MOST = 60  # failing cases per platform
ROWS, COLUMNS = 48, 96  # size of a picture in points
_LARGEST = 1e30  # larger differences are drawn as this one
_LINE = re.compile(r"\bline (\d+)\b(?! of )")


def failures(session: Session, rows: Sequence[tuple[str, Row]], kernels: dict[str, str]) -> list[dict[str, Any]]:
    """Return one entry for each (trace, row) whose case failed.

    The function adds each kernel file's text to `kernels`, keyed by path.
    """
    entries: list[dict[str, Any]] = []
    cases: dict[str, dict[str, list[Case]]] = {}
    standings = session.judge.standings()
    for trace, row in rows:
        if not row.failing or len(entries) >= MOST:
            continue
        match = session.library.match(row.overload)
        if match is None or row.kernel is None:
            continue
        if trace not in cases:
            cases[trace] = cases_by_overload(session.workspace.open_trace(trace))
        refused = refusal(match.job, session.platform)  # has no stored verdict
        verdict = refused or standings[match.kernels, row.overload].failed.get(row.failing)
        case = next((c for c in cases[trace].get(row.overload, ()) if c.id == row.failing), None)
        if verdict is None or case is None:
            continue
        kernels.setdefault(row.kernel, match.kernel.path.read_text(encoding="utf-8", errors="replace"))
        entries.append(
            {
                "overload": row.overload,
                "platform": session.platform.name,
                "trace": trace,
                "case": row.failing,
                "state": str(verdict.outcome),
                "layer": verdict.layer,
                "rule": verdict.rule,
                "detail": verdict.detail,
                "report": verdict.report[:20_000],
                "kernel": row.kernel,
                "lines": marked_lines(verdict.report, kernels[row.kernel]),
                "command": row.again,
                "picture": None if refused else _pictured(session, replace(match.job, cases=(case,)), case),
            }
        )
    return entries


def marked_lines(report: str, text: str) -> list[int]:
    """Return the lines of a kernel file that a report names."""
    last = text.count("\n") + 1
    return sorted({int(n) for n in _LINE.findall(report) if 0 < int(n) <= last})


def _pictured(session: Session, job: Job, case: Case) -> dict[str, Any] | None:
    """Judge the case again and return its picture, or None."""
    with session.judge.running(job) as run:
        results = run.judge(case).answered
    return picture(*results) if results is not None else None


def picture(expected: Expected, got: Packed) -> dict[str, Any] | None:
    """Draw the differences in the tensor that differs most; None if no comparable tensor differs.

    The values are decimal logarithms of the difference divided by the largest expected value. Each point shows the
    maximum over its part, and null if there is no difference. Tensors with different shapes are skipped.
    """
    worst: tuple[float, torch.Tensor] | None = None
    for i, (a, b) in enumerate(zip(expected.values.tensors, got.tensors, strict=False)):
        if a.shape != b.shape or 0 in a.shape:
            continue
        expected_values, actual_values = (contents(packed, i).to(torch.complex128) for packed in (expected.values, got))
        difference = (actual_values - expected_values).abs()
        is_equal = (actual_values == expected_values) | (actual_values.isnan() & expected_values.isnan())
        difference = torch.where(is_equal, 0.0, torch.where(difference.isfinite(), difference, torch.inf))
        scale = (
            expected_values.abs()[expected_values.isfinite()].max()
            if expected_values.isfinite().any()
            else torch.tensor(1.0)
        )
        difference = difference / (scale if scale else 1.0)
        if worst is None or float(difference.max()) > worst[0]:
            worst = float(difference.max()), difference
    if worst is None or not worst[0]:
        return None
    difference = worst[1]
    flat = difference.reshape(-1, difference.shape[-1]) if difference.dim() > 1 else difference.reshape(1, -1)
    pooled = torch.nn.functional.adaptive_max_pool2d(
        flat.clamp(max=_LARGEST).float()[None], (min(ROWS, flat.shape[0]), min(COLUMNS, flat.shape[1]))
    )[0]
    rows = [[round(v, 2) if math.isfinite(v) else None for v in row] for row in pooled.log10().tolist()]
    return {"shape": list(difference.shape), "rows": rows}
