"""Shared parts of targets from other libraries: step settings, optimizers, and a fallback loss."""

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
from traces.errors import UserError, choose_from

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
    "image": Setting(int, None, optional=True),  # pixels per side of random images; by default the model's own size
}


# The operators for which torchvision registers fake implementations when it is imported.
_TORCHVISION = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def import_library(name: str, extra: str) -> Any:
    """Import a library with downloads disabled. Raise UserError if it is not installed or cannot be imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # read once, when the hub's client is imported
    _mend_torchvision()
    with foreign(f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            problem = "is not installed" if error.name == name else f"lacks {error.name}"
            raise UserError(f"{name} {problem}; run: pip install 'enablekit[{extra}]'") from error


@cache
def _mend_torchvision() -> None:
    """Declare the operators of a torchvision that was built for another torch.

    This happens, for example, with a registry's torchvision beside a CPU build. Such a torchvision cannot load its
    operators, and its import then fails when it registers their fake implementations. No model needs these operators to
    be built; a call to one reports a missing kernel.
    """
    try:
        importlib.import_module("torchvision")
    except ImportError:
        return
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            return  # reported when a library imports torchvision
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        for schema in _TORCHVISION:
            torch.library.define(f"torchvision::{schema.partition('(')[0]}", schema[schema.index("(") :])


def common_settings(owner: str, values: Mapping[str, Any], **defaults: int) -> dict[str, Any]:
    """Return the settings of the training step, with defaults filled in.

    Args:
        owner: Name of the target, for messages.
        values: Given values.
        **defaults: Further positive settings, with their defaults.

    Raises:
        UserError: If a value is invalid.
    """
    names = {**{name: setting.default for name, setting in COMMON.items()}, **defaults}
    settings = {name: values.get(name, default) for name, default in names.items()}
    for name in ("batch", "lr", "image", *defaults):
        if settings[name] is not None and settings[name] <= 0:
            raise UserError(f"{owner}: {name} {settings[name]} is not above 0")
    if settings["optimizer"] not in OPTIMIZERS:
        name = str(settings["optimizer"])
        raise UserError(f"{owner}: unknown optimizer {name!r}{choose_from(name, OPTIMIZERS)}")
    return settings


def make_optimizer(model: nn.Module, settings: Mapping[str, Any]) -> torch.optim.Optimizer:
    parameters = [p for p in model.parameters() if p.requires_grad]
    return OPTIMIZERS[settings["optimizer"]](parameters, lr=settings["lr"])


def mean_magnitude(output: Any) -> Tensor:
    """Return a loss for any output: the mean magnitude of its first tensor that requires a gradient.

    The plain mean is not suitable: after a layer norm it is constant, and its gradient is zero. Raise ValueError if no
    output requires a gradient.
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
