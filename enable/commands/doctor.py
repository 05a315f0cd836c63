"""Define `enable doctor`: check the machine's prerequisites."""

from __future__ import annotations

import json

import typer

from enable.options import AsJson


def command(context: typer.Context, as_json: AsJson = False) -> None:
    """Check that this machine has what the toolkit needs."""
    from enable.doctor import examine

    checks = examine(context.obj)
    if as_json:
        typer.echo(json.dumps({"checks": [vars(c) for c in checks], "ok": all(c.ok for c in checks)}))
    else:
        for check in checks:
            typer.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<12} {check.detail}")
    raise typer.Exit(0 if all(c.ok for c in checks) else 1)
