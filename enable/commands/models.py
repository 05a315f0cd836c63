"""`enable models`."""

from __future__ import annotations

import json

import typer

from enable.options import AsJson


def command(as_json: AsJson = False) -> None:
    """List the models that can be captured by name, with their settings."""
    from capture.targets import describe_models

    models = describe_models()
    if as_json:
        typer.echo(json.dumps({"models": models}))
        return
    for model in models:
        typer.echo(f"{model['name']}: {model['description']}")
        typer.echo(f"    optimizers  {', '.join(model['optimizers'])}")
        typer.echo(f"    --set       {' '.join(f'{k}={v}' for k, v in model['settings'].items())}")
