"""Define `enable doctor`: check the machine's prerequisites."""

from __future__ import annotations

import json

import typer

from enable.help import examples
from enable.options import AsJson

EPILOG = examples({"Check this machine before the first capture": "enable doctor"})


def command(context: typer.Context, as_json: AsJson = False) -> None:
    """Check that this machine meets the toolkit's requirements.

    Exit status 1 if a check fails.
    """
    from enable.doctor import examine

    checks = examine(context.obj)
    if as_json:
        typer.echo(json.dumps({"checks": [vars(c) for c in checks], "ok": all(c.ok for c in checks)}))
    else:
        for check in checks:
            typer.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<12} {check.detail}")
    raise typer.Exit(0 if all(c.ok for c in checks) else 1)
