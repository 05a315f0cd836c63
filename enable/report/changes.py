"""Compare a report with an earlier one, given as its page or as its JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from traces import UserError
from traces.errors import read_problem
from traces.program import program_name
from verify.outcome import Outcome

FORMAT, VERSION = "enable-report", 2
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def earlier(path: Path) -> dict[str, Any]:
    """Read an earlier report's data. Raise UserError if the file is not a report."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        remedy = f"name a page of {program_name()} report, or its --json"
        raise UserError(f"--since {path}: cannot be read ({read_problem(error)}); {remedy}") from error
    embedded_json = _DATA.search(text)
    try:
        data = json.loads(embedded_json[1] if embedded_json else text)
        is_report = data["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        problem = f"is no report; name a page that {program_name()} report wrote, or what its --json printed"
        raise UserError(f"--since {path}: {problem}") from error
    if not is_report or data["version"] != VERSION:
        its_format = f"{str(data['format'])[:40]} {str(data.get('version'))[:10]}"
        raise UserError(f"--since {path}: of format {its_format}, this one reads {FORMAT} {VERSION}; make it anew")
    return dict(data)


def changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return the overloads whose state differs, by platform, and the earlier shares for all models."""
    states_before, states_now = (
        {(r["platform"], r["overload"]): r["state"] for r in of["overloads"]} for of in (before, now)
    )
    rows = [
        {
            "platform": platform,
            "overload": overload,
            "earlier_state": states_before.get((platform, overload), "-"),
            "state": state,
        }
        for (platform, overload), state in states_now.items()
        if states_before.get((platform, overload)) != state
    ]
    gone = [
        {"platform": p, "overload": o, "earlier_state": s, "state": "-"}
        for (p, o), s in states_before.items()
        if (p, o) not in states_now
    ]
    passes = str(Outcome.PASS)
    shares = {(m["platform"], m["name"]): m["overloads"]["percent"] for m in before["models"]}
    return {
        "since": before["made"],
        "rows": [*rows, *gone],
        "gained": sum(r["state"] == passes for r in rows),
        "lost": sum(r["earlier_state"] == passes for r in [*rows, *gone]),
        "models": [
            {"name": m["name"], "platform": m["platform"], "before": shares.get((m["platform"], m["name"]))}
            for m in now["models"]
        ],
    }
