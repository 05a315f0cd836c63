"""Cases that fail, each judged once more for a picture of where its answer differs."""

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
from verify.cases.case import Case, Expected, contents
from verify.judging.judge import Job

MOST = 60  # failing cases of a platform that are looked at
ROWS, COLUMNS = 48, 96  # of a picture
_LARGEST = 1e30  # difference that is drawn
_LINE = re.compile(r"\bline (\d+)\b(?! of )")


def failures(session: Session, rows: Sequence[tuple[str, Row]], kernels: dict[str, str]) -> list[dict[str, Any]]:
    """One for each (trace, row) whose case failed. kernels: takes the text of each kernel file, by its path."""
    found: list[dict[str, Any]] = []
    cases: dict[str, dict[str, list[Case]]] = {}
    standings = session.judge.standings()
    for trace, row in rows:
        if not row.failing or len(found) >= MOST:
            continue
        match = session.library.match(row.overload)
        if match is None or row.kernel is None:
            continue
        if trace not in cases:
            cases[trace] = cases_by_overload(session.workspace.open_trace(trace))
        verdict = standings[match.kernels, row.overload].failed.get(row.failing)
        case = next((c for c in cases[trace].get(row.overload, ()) if c.id == row.failing), None)
        if verdict is None or case is None:
            continue
        kernels.setdefault(row.kernel, match.kernel.path.read_text(encoding="utf-8", errors="replace"))
        found.append(
            {
                "overload": row.overload,
                "platform": session.platform.name,
                "trace": trace,
                "case": row.failing,
                "outcome": str(verdict.outcome),
                "layer": verdict.layer,
                "rule": verdict.rule,
                "detail": verdict.detail,
                "report": verdict.report[:20_000],
                "kernel": row.kernel,
                "lines": marked_lines(verdict.report, kernels[row.kernel]),
                "again": row.again,
                "picture": _pictured(session, replace(match.job, cases=(case,)), case),
            }
        )
    return found


def marked_lines(report: str, text: str) -> list[int]:
    """Lines of a kernel file that a report names."""
    last = text.count("\n") + 1
    return sorted({int(n) for n in _LINE.findall(report) if 0 < int(n) <= last})


def _pictured(session: Session, job: Job, case: Case) -> dict[str, Any] | None:
    with session.judge.running(job) as run:
        answered = run.judge(case).answered
    return picture(*answered) if answered is not None else None


def picture(expected: Expected, got: Packed) -> dict[str, Any] | None:
    """Where the tensor that differs most does so: the decimal logarithm of the difference, in units of the largest
    expected value, each point the worst of its part; null where nothing differs. None if shapes are not alike."""
    worst: tuple[float, torch.Tensor] | None = None
    for i, (a, b) in enumerate(zip(expected.values.tensors, got.tensors, strict=False)):
        if a.shape != b.shape or 0 in a.shape:
            continue
        right, answer = (contents(packed, i).to(torch.complex128) for packed in (expected.values, got))
        off = (answer - right).abs()
        same = (answer == right) | (answer.isnan() & right.isnan())
        off = torch.where(same, 0.0, torch.where(off.isfinite(), off, torch.inf))
        scale = right.abs()[right.isfinite()].max() if right.isfinite().any() else torch.tensor(1.0)
        off = off / (scale if scale else 1.0)
        if worst is None or float(off.max()) > worst[0]:
            worst = float(off.max()), off
    if worst is None or not worst[0]:
        return None
    off = worst[1]
    flat = off.reshape(-1, off.shape[-1]) if off.dim() > 1 else off.reshape(1, -1)
    pooled = torch.nn.functional.adaptive_max_pool2d(
        flat.clamp(max=_LARGEST).float()[None], (min(ROWS, flat.shape[0]), min(COLUMNS, flat.shape[1]))
    )[0]
    rows = [[round(v, 2) if math.isfinite(v) else None for v in row] for row in pooled.log10().tolist()]
    return {"shape": list(off.shape), "rows": rows}
