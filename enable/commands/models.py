"""Define `enable models`: list the models that can be captured."""

from __future__ import annotations

import json
from typing import Any

import typer

from enable.help import examples
from enable.options import AsJson
from traces.program import program_name

_OTHERS = """transformers:CLASS: from that library, built with random weights, e.g. transformers:GPT2LMHeadModel.
timm:MODEL: likewise, e.g. timm:vit_tiny_patch16_224.
MODULE:FACTORY: your own training step; see: {program} capture --help"""

EPILOG = examples(
    {"List the models": "enable models", "Capture one with another setting": "enable capture nanogpt --set n_layer=2"}
)


def command(as_json: AsJson = False) -> None:
    """List the models that can be captured, with settings."""
    from capture.targets import default_settings, describe_models

    models: list[dict[str, Any]] = [
        {"name": name, "description": description, "settings": default_settings(name)}
        for name, description in describe_models().items()
    ]
    if as_json:
        typer.echo(json.dumps({"models": models}))
        return
    for model in models:
        typer.echo(f"{model['name']}: {model['description']}")
        for setting, value in model["settings"].items():
            typer.echo(f"    --set {setting}={value}")
    typer.echo(_OTHERS.format(program=program_name()))
