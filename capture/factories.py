"""A user's own training step, from a factory named MODULE:FACTORY.

The factory returns one of these:

- a callable `step()`;
- a tuple or mapping (model, batch, loss, optimizer), for which this module runs the step and names its phases;
- an object with `model`, `batches` and `step(batch, phase)`, such as models.training.Training.

batch: any value, a callable that returns the next one, an iterator or a DataLoader. loss(model, batch): calls the model
and returns a scalar tensor. optimizer: None records only forward, loss and backward.
"""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch
from torch import nn
from torch.utils.data import DataLoader

from capture.settings import of_signature, parse
from traces.errors import UserError

Phase: TypeAlias = Callable[[str], AbstractContextManager[Any]]

_PARTS = ("model", "batch", "loss", "optimizer")
_SHAPES = f"a callable step(), or ({', '.join(_PARTS)}) as a tuple or mapping"
_ROOT = Path(__file__).parents[1]
_OURS = tuple(_ROOT / name for name in ("capture", "traces", "enable"))
_INSTALLED = {"site-packages", "dist-packages"}


class Program(Protocol):
    """A program that can be recorded.

    Attributes:
        model: Gives the modules their names.
        batches: One for each step.
    """

    @property
    def model(self) -> nn.Module | None: ...
    @property
    def batches(self) -> Iterator[Any]: ...
    def step(self, batch: Any, phase: Phase) -> Any:
        """Run one training step, inside phase(name) if the phase is known; return the loss, or nothing."""


@dataclass(frozen=True)
class StepProgram:
    """A program whose step is foreign code.

    Attributes:
        name: Name of the target, for messages.
        model: The model, or None if it is unknown.
        batches: One for each step.
        run: Runs one step, given a batch and a function that enters a phase.
    """

    name: str
    model: nn.Module | None
    batches: Iterator[Any]
    run: Callable[[Any, Phase], Any]

    def step(self, batch: Any, phase: Phase) -> Any:
        with foreign(f"{self.name}: a training step"):
            return self.run(batch, phase)


def load_factory(name: str, texts: Mapping[str, str]) -> tuple[dict[str, Any], StepProgram]:
    """Import a module and call its factory.

    The working directory is put first on `sys.path`, for this import and later ones.

    Args:
        name: MODULE:FACTORY.
        texts: Settings for the factory, as text.

    Returns:
        tuple: The parsed settings, and the program that the factory returned.

    Raises:
        UserError: If anything fails, including the user's code.
    """
    factory = _find(name)
    known, takes_others = of_signature(factory)
    settings = parse(name, known, texts, takes_others)
    with foreign(f"{name}: the factory"):
        product = factory(**settings)
    return settings, _program(name, product)


@contextmanager
def foreign(subject: str) -> Iterator[None]:
    """Convert any exception from foreign code into a one-line UserError with its location in the user's own files."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code may raise anything
        reason = " ".join(str(error).split())[:300]
        location = _error_location(error)
        raise UserError(f"{subject} raised {type(error).__name__}: {reason}{location and f' at {location}'}") from error


def _error_location(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}:{error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_below(f.filename, *_OURS)]
    user_frames = [f for f in frames if _is_users(f.filename)] or frames
    return f"{_shown(user_frames[-1].filename)}:{user_frames[-1].lineno}" if user_frames else ""


def _is_users(file: str) -> bool:
    paths = sysconfig.get_paths()
    installed = _INSTALLED & set(Path(file).parts) or _is_below(file, paths["stdlib"], paths["platstdlib"])
    return not installed and not file.startswith("<")


def _is_below(file: str, *directories: str | Path) -> bool:
    return any(Path(file).is_relative_to(d) for d in directories)


def _shown(file: str) -> str:
    return os.path.relpath(file) if _is_below(file, os.getcwd()) else file


def _find(name: str) -> Callable[..., Any]:
    module_name, _, attribute = name.partition(":")
    parts = (*module_name.split("."), *attribute.split("."))
    if module_name.endswith(".py") or not all(part.isidentifier() for part in parts):
        raise UserError(f"{name!r} is not MODULE:FACTORY; write it like train:make or pkg.module:make, without .py")
    module = target = _import(module_name)
    for part in attribute.split("."):
        target = getattr(target, part, None)
        if target is None:
            choices = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module_name]
            have = f"it defines {', '.join(choices)}" if choices else "it defines nothing"
            raise UserError(f"{name}: {getattr(module, '__file__', module_name)} has no {attribute!r}; {have}")
    if not callable(target):
        raise UserError(f"{name}: {attribute} is {_article(target)}, not a function that returns {_SHAPES}")
    return target  # type: ignore[no-any-return]


def _import(name: str) -> Any:
    directory = os.getcwd()
    if directory not in sys.path[:1]:
        sys.path.insert(0, directory)
    with foreign(f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            message = f"no module {error.name!r} in {directory} or installed; run this where `import {name}` works"
            raise UserError(message) from error


def _article(value: object) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def _program(name: str, made: Any) -> StepProgram:
    """Convert the factory's result into a program that runs step by step."""
    if isinstance(made, Mapping):
        if set(made) != set(_PARTS):
            raise UserError(f"{name}: the factory returned a mapping of {sorted(map(str, made))}; return {_SHAPES}")
        return trained(name, **made)
    if isinstance(made, tuple | list):
        if len(made) != len(_PARTS):
            raise UserError(f"{name}: the factory returned {len(made)} values; return {_SHAPES}")
        return trained(name, *made)
    if all(hasattr(made, part) for part in ("model", "batches", "step")):
        return StepProgram(name, made.model, _each(name, iter(made.batches)), made.step)
    if isinstance(made, nn.Module) or not callable(made):
        raise UserError(f"{name}: the factory returned {_article(made)}; return {_SHAPES}")
    return StepProgram(name, None, repeat(None), lambda batch, phase: made())


def trained(name: str, model: Any, batch: Any, loss: Any, optimizer: Any) -> StepProgram:
    """Return the usual training step, built from its parts.

    Args:
        name: Name of the target, for messages.
        model: The module to train.
        batch: A value, callable, iterator or DataLoader, as in the module docstring.
        loss: Function of model and batch that returns a scalar tensor.
        optimizer: An optimizer, or None.

    Raises:
        UserError: If a part has the wrong type.
    """
    if not isinstance(model, nn.Module):
        raise UserError(f"{name}: model is {_article(model)}, not a torch.nn.Module")
    if next(model.parameters(), None) is None:
        raise UserError(f"{name}: model {type(model).__name__} has no parameters, so there is nothing to train")
    if isinstance(loss, nn.Module) or not callable(loss):
        raise UserError(
            f"{name}: loss is {_article(loss)}, not a function loss(model, batch); write it like"
            " lambda model, batch: criterion(model(batch[0]), batch[1])"
        )
    if optimizer is not None and not isinstance(optimizer, torch.optim.Optimizer):
        raise UserError(
            f"{name}: optimizer is {_article(optimizer)}, not a torch.optim.Optimizer; None for no optimizer"
        )
    batches = _each(name, _source(batch))
    return StepProgram(name, model, batches, lambda data, phase: _train(name, model, loss, optimizer, data, phase))


def _source(batch: Any) -> Iterator[Any]:
    if isinstance(batch, DataLoader | Iterator):
        return iter(batch)
    return (batch() for _ in repeat(None)) if callable(batch) else repeat(batch)


def _each(name: str, source: Iterator[Any]) -> Iterator[Any]:
    end = object()
    while True:
        with foreign(f"{name}: the next batch"):
            batch = next(source, end)
        if batch is end:
            return
        yield batch


def _train(  # noqa: PLR0913 - the four parts of a step, its batch and its phases
    name: str, model: nn.Module, loss: Any, optimizer: torch.optim.Optimizer | None, batch: Any, phase: Phase
) -> torch.Tensor:
    with phase("loss"), _forward(model, phase):
        value = loss(model, batch)
    if not isinstance(value, torch.Tensor) or value.numel() != 1:
        raise UserError(f"{name}: loss(model, batch) returned {_article(value)}, not a tensor of one element")
    if not value.requires_grad:
        raise UserError(
            f"{name}: the loss needs no gradient, so there is no backward to record; unfreeze the model, leave no_grad,"
            " or return a callable step() that runs forward alone"
        )
    with phase("backward"):
        value.backward()  # type: ignore[no-untyped-call]
    if optimizer is not None:
        with phase("optimizer"):
            optimizer.step()
    model.zero_grad(set_to_none=True)
    return value


@contextmanager
def _forward(model: nn.Module, phase: Phase) -> Iterator[None]:
    """Enter the phase "forward" while the model runs."""
    running: list[AbstractContextManager[Any]] = []

    def enter(module: nn.Module, args: Any) -> None:
        running.append(phase("forward"))
        running[-1].__enter__()

    def leave(module: nn.Module, args: Any, output: Any) -> None:
        running.pop().__exit__(None, None, None)

    hooks = [model.register_forward_pre_hook(enter), model.register_forward_hook(leave, always_call=True)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
