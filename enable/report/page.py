"""Render a report's data as one self-contained HTML page.

Texts from traces, kernels and models reach the page as JSON. The page's own script inserts them as text, so they never
become markup. A Content-Security-Policy admits only the page's own scripts, by their hashes, and no connections.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from traces.packaging import qualified

_ASSETS = Path(__file__).parent / "assets"
_SCRIPTS = ("tabulator.js", "plotly.js", "report.js")
_STYLES = ("tabulator.css", "report.css")


def html(data: dict[str, Any]) -> str:
    """Return the whole page."""
    environment = Environment(loader=PackageLoader(qualified("enable")), autoescape=True, undefined=StrictUndefined)
    scripts = [(_ASSETS / name).read_text(encoding="utf-8").replace("</script", "<\\/script") for name in _SCRIPTS]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return environment.get_template("report.html.j2").render(
        data=Markup(embedded(data)),  # embedded() escapes all markup
        scripts=[Markup(s) for s in scripts],  # our own files
        styles=[Markup((_ASSETS / name).read_text(encoding="utf-8")) for name in _STYLES],
        policy=f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'",
        made=data["made"],
        platforms=data["platforms"],
    )


def embedded(data: dict[str, Any]) -> str:
    """Return the data as JSON that is safe inside a script element: no character begins or ends markup."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
