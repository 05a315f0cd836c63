"""What models of other libraries share: settings of the training step, its optimizer, a loss where there is none."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from capture.factories import foreign
from capture.settings import Setting
from traces.errors import UserError

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adamw": partial(torch.optim.AdamW, foreach=False),  # a loop over the parameters
    "adamw-foreach": partial(torch.optim.AdamW, foreach=True),
    "adamw-fused": partial(torch.optim.AdamW, fused=True),
    "sgd": partial(torch.optim.SGD, foreach=False),
}
COMMON = {
    "batch": Setting(int, 2),
    "optimizer": Setting(str, "adamw"),
    "lr": Setting(float, 1e-3),
    "seed": Setting(int, 0),
    "image": Setting(int, None, optional=True),  # pixels a side of images that are made up; by default the model's own
}


# The operators that torchvision says shapes for when it is imported.
_TORCHVISION = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def import_library(name: str, extra: str) -> Any:
    """The library, told to download nothing. Raises UserError if it is not installed or cannot be imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # read once, when the hub's client is imported
    _mend_torchvision()
    with foreign(f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            what = "is not installed" if error.name == name else f"lacks {error.name}"
            raise UserError(f"{name} {what}; run: pip install 'enablekit[{extra}]'") from error


@cache
def _mend_torchvision() -> None:
    """Declare the operators of a torchvision that is built for another torch, as a registry's beside a CPU build.

    It cannot load them, and its import then fails where it says what shapes they give. No model needs them to be built;
    what calls one is told that there is none.
    """
    try:
        importlib.import_module("torchvision")
    except ImportError:
        return
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            return  # told when a library imports it
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for schema in _TORCHVISION:
            torch.library.define(f"torchvision::{schema.partition('(')[0]}", schema[schema.index("(") :])


def common_settings(owner: str, values: Mapping[str, Any], **defaults: int) -> dict[str, Any]:
    """Settings of the training step with their defaults. defaults: of further counts. Raises UserError."""
    names = {**{name: setting.default for name, setting in COMMON.items()}, **defaults}
    found = {name: values.get(name, default) for name, default in names.items()}
    for name in ("batch", "lr", "image", *defaults):
        if found[name] is not None and found[name] <= 0:
            raise UserError(f"{owner}: {name} {found[name]} is not above 0")
    if found["optimizer"] not in OPTIMIZERS:
        raise UserError(f"{owner}: optimizer {found['optimizer']!r} is not one of: {', '.join(OPTIMIZERS)}")
    return found


def make_optimizer(model: nn.Module, settings: Mapping[str, Any]) -> torch.optim.Optimizer:
    parameters = [p for p in model.parameters() if p.requires_grad]
    return OPTIMIZERS[settings["optimizer"]](parameters, lr=settings["lr"])


def mean_magnitude(output: Any) -> Tensor:
    """A loss for outputs of any form: the mean magnitude of the first tensor that has a gradient.

    The plain mean would not do: after a layer norm it is constant, and its gradient zero. Raises ValueError.
    """
    for leaf in _leaves(output):
        if leaf.requires_grad:
            return leaf.float().abs().mean()
    raise ValueError("no output has a gradient")


def _leaves(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping | list | tuple):
        for value in output.values() if isinstance(output, Mapping) else output:
            yield from _leaves(value)
