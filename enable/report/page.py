"""Render a report's data as one self-contained HTML page.

Texts from traces, kernels and models reach the page as JSON. `content` replaces control characters in them, and the
page's own scripts insert them as text, so they never become markup. A Content-Security-Policy admits only the page's
own scripts, by their hashes, and no connections.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from enable.naming import kernel_path
from enable.terminal import LAYOUT, printable
from traces.packaging import qualified

_ASSETS = Path(__file__).parent / "assets"
_SCRIPTS = ("tabulator.js", "plotly.js", "elements.js", "widgets.js", "report.js")
_STYLES = ("tabulator.css", "report.css")


def content(data: dict[str, Any], directory: Path = Path()) -> dict[str, Any]:
    """Return the page's data: the report's, with printable texts and with a link to each kernel file.

    Args:
        data: The report's data.
        directory: The page's directory; links are relative to it.
    """
    kernels = {row["kernel"] for key in ("overloads", "failures") for row in data[key] if row["kernel"]}
    links = {shown: relative_path for shown in kernels if (relative_path := _relative(shown, directory))}
    result: dict[str, Any] = _printable({**data, "links": links})
    for shown, relative_path in links.items():
        outside = relative_path.startswith(os.pardir)  # a page that is passed on does not show a machine's directories
        text = "/".join(Path(shown).parts[-2:]) if outside else relative_path
        result["links"][printable(shown, LAYOUT)] = {"text": printable(text), "href": quote(relative_path)}
    return result


def _relative(shown: str, directory: Path) -> str:
    """Return a kernel file's path relative to a directory, or "" if there is no such file."""
    path = kernel_path(shown)
    return os.path.relpath(path, directory.absolute()) if path.is_file() else ""


def _printable(value: Any) -> Any:
    """Return a JSON value with visible escapes for control characters in all its texts."""
    if isinstance(value, str):
        return printable(value, LAYOUT)
    if isinstance(value, dict):
        return {printable(str(key), LAYOUT): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value


def html(data: dict[str, Any], directory: Path = Path()) -> str:
    """Return the whole page.

    Args:
        data: The report's data.
        directory: The page's directory; links to kernel files are relative to it.
    """
    page_data = content(data, directory)
    environment = Environment(loader=PackageLoader(qualified("enable")), autoescape=True, undefined=StrictUndefined)
    scripts = [(_ASSETS / name).read_text(encoding="utf-8").replace("</script", "<\\/script") for name in _SCRIPTS]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return environment.get_template("report.html.j2").render(
        data=Markup(embedded(page_data)),  # embedded() escapes all markup
        scripts=[Markup(s) for s in scripts],  # our own files
        styles=[Markup((_ASSETS / name).read_text(encoding="utf-8")) for name in _STYLES],
        policy=f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'",
        made=page_data["made"],
        platforms=page_data["platforms"],
        headlines=page_data["headlines"],
    )


def embedded(data: dict[str, Any]) -> str:
    """Return the data as JSON that is safe inside a script element: no character begins or ends markup."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
