"""What changed since an earlier report: its page, or the JSON that was kept of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from traces import UserError
from verify.outcome import Outcome

FORMAT, VERSION = "enable-report", 1
_DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def earlier(path: Path) -> dict[str, Any]:
    """The data of an earlier report. Raises UserError for a file that is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"--since {path}: cannot be read ({error}); name a page of enable report, or its --json"
        ) from error
    inside = _DATA.search(text)
    try:
        found = json.loads(inside[1] if inside else text)
        known = found["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        what = "is no report; name a page that enable report wrote, or what its --json printed"
        raise UserError(f"--since {path}: {what}") from error
    if not known or found["version"] != VERSION:
        told = f"{str(found['format'])[:40]} {str(found.get('version'))[:10]}"
        raise UserError(f"--since {path}: of format {told}, this one reads {FORMAT} {VERSION}; make it anew")
    return dict(found)


def changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Overloads, by platform, whose state differs, and models whose share does."""
    was, is_ = ({(r["platform"], r["overload"]): r["state"] for r in of["overloads"]} for of in (before, now))
    rows = [
        {"platform": platform, "overload": overload, "before": was.get((platform, overload), "-"), "now": state}
        for (platform, overload), state in is_.items()
        if was.get((platform, overload)) != state
    ]
    gone = [{"platform": p, "overload": o, "before": s, "now": "-"} for (p, o), s in was.items() if (p, o) not in is_]
    passes = str(Outcome.PASS)
    shares = {(m["platform"], m["name"]): m["overloads"]["percent"] for m in before["models"]}
    return {
        "since": before["made"],
        "rows": [*rows, *gone],
        "gained": sum(r["now"] == passes for r in rows),
        "lost": sum(r["before"] == passes for r in [*rows, *gone]),
        "models": [
            {"name": m["name"], "platform": m["platform"], "before": shares.get((m["platform"], m["name"]))}
            for m in now["models"]
        ],
    }
