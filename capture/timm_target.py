"""Models from the `timm` library, with random weights, images and classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capture.factories import StepProgram, foreign, trained
from capture.libraries import COMMON, common_settings, import_library, make_optimizer, mean_magnitude
from capture.settings import nearest, of_signature, parse
from traces.errors import UserError


def load_timm(target: str, name: str, texts: Mapping[str, str], device: str) -> tuple[dict[str, Any], StepProgram]:
    """Build a model by its name.

    Args:
        target: Name of the target, for messages.
        name: Model name in timm.
        texts: Arguments for its class and settings for the training step, as text.
        device: Device to build on.

    Returns:
        tuple: All settings, and the program.

    Raises:
        UserError: If the model or a setting is unknown, or the model cannot be built.
    """
    timm = import_library("timm", "timm")
    if not timm.is_model(name):
        near = nearest(name, timm.list_models())
        hint = (
            f"nearest are {', '.join(near)}"
            if near
            else "list them: python -c 'import timm; print(timm.list_models())'"
        )
        raise UserError(f"timm has no model {name!r}; {hint}")
    with foreign(f"{target}: building the model"), torch.device("meta"):
        known, takes_others = of_signature(type(timm.create_model(name, pretrained=False)))
    values = parse(target, {**known, **COMMON}, texts, takes_others)
    settings = common_settings(target, values)
    values = {key: value for key, value in values.items() if key not in COMMON}
    torch.manual_seed(settings["seed"])
    with foreign(f"{target}: building the model"):
        model = timm.create_model(name, pretrained=False, **values).to(device).train()
    size = _image(model, values, settings["image"])
    batches = _batches(model, (settings["batch"], *size), settings["seed"], device)
    return {**settings, **values}, trained(target, model, batches, _loss, make_optimizer(model, settings))


def _image(model: Any, values: Mapping[str, Any], asked: int | None) -> tuple[int, int, int]:
    """Return channels, height and width of an image. `asked` is the size in pixels; None uses the model's own size."""
    channels, height, width = model.default_cfg.get("input_size", (3, 224, 224))
    side = asked or values.get("img_size", (height, width))
    height, width = side if isinstance(side, list | tuple) else (side, side)
    return values.get("in_chans", channels), int(height), int(width)


def _batches(model: Any, shape: tuple[int, int, int, int], seed: int, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield images [B, C, H, W] float32 and classes [B] int64."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        images = torch.randn(shape, generator=generator)
        classes = torch.randint(max(model.num_classes, 1), shape[:1], generator=generator)
        yield images.to(device), classes.to(device)


def _loss(model: Any, batch: tuple[Tensor, Tensor]) -> Tensor:
    output = model(batch[0])
    if isinstance(output, Tensor) and output.dim() == 2 and model.num_classes:
        return F.cross_entropy(output, batch[1])
    return mean_magnitude(output)
