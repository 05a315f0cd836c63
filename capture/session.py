"""Recording training steps of a model of the zoo."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from capture.recorder import Recorder
from capture.targets import Target
from traces.errors import UserError
from traces.store import Trace
from traces.writer import remove_trace


@dataclass(frozen=True)
class Summary:
    """What was recorded.

    nbytes: size of the trace on disk. seconds: for all of it. losses: one a step. errors: of the recorder, by operator.
    """

    path: Path
    calls: int
    stored: int
    overloads: int
    signatures: int
    nbytes: int
    seconds: float
    losses: list[float]
    errors: dict[str, Any]


def capture_model(
    target: Target,
    path: str | os.PathLike[str],
    *,
    steps: int = 1,
    per_signature: int = 1,
    force: bool = False,
    progress: bool = True,
) -> Summary:
    """Train for some steps from the start, recording all of them; the trace appears at `path` when it is complete.

    The first step counts: it also runs what creates the optimizer's state. steps: how many. per_signature: how many
    calls of each signature are stored. force: replace an existing trace. progress: a bar on stderr after a second.
    Raises UserError if the path is taken, if the data cannot be read, or if recording had to stop.
    """
    if steps < 1:
        raise UserError(f"--steps {steps} is not a number of steps; use 1 or more")
    path = Path(path)
    if not force and (path.exists() or path.is_symlink()):
        raise UserError(f"{path} exists; pass --force to replace it or --out DIR to write elsewhere")
    start = time.perf_counter()
    with _fresh_directory(path) as temporary:
        losses = _record(target, temporary, steps, per_signature, progress)
        manifest = Trace.open(temporary, partial=True).manifest
        if manifest["state"] != "complete":
            raise UserError(f"{path}: recording stopped after errors: {manifest.get('errors')}")
    return _summarise(path, losses, time.perf_counter() - start)


def _record(target: Target, path: Path, steps: int, per_signature: int, progress: bool) -> list[float]:
    training = target.training
    batches = _draw(target, steps)  # before recording, which would see the loading of data too
    info = {"model": target.name, "settings": target.settings, "device": target.device, "steps": steps}
    recorder = Recorder(path, per_signature=per_signature, model=training.model, info=info)
    losses = []
    with recorder:
        for batch in tqdm(batches, desc=f"capture {target.name}", unit="step", delay=1, disable=not progress):
            try:
                loss = training.step(batch, recorder.phase)
            except (RuntimeError, MemoryError, OverflowError) as error:
                reason = str(error).partition("\n")[0][:200]
                raise UserError(f"{target.name}: a training step failed ({reason}); see: enable models") from error
            recorder.step()
            with recorder.pause():
                losses.append(loss.item())
    return losses


def _draw(target: Target, steps: int) -> list[Any]:
    try:
        return list(islice(target.training.batches, steps))
    except (ValueError, RuntimeError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"{target.name}: no batch can be had ({reason}); see: enable models") from error


@contextmanager
def _fresh_directory(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; moved to `path` at the end, or deleted if the block raises."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        parent = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise UserError(f"{path}: cannot write here ({error.strerror})") from error
    try:
        yield parent / path.name
        if path.exists():
            remove_trace(path)
        os.rename(parent / path.name, path)
    finally:
        shutil.rmtree(parent)


def _summarise(path: Path, losses: list[float], seconds: float) -> Summary:
    trace = Trace.open(path)
    return Summary(
        path=path,
        calls=trace.manifest["calls"],
        stored=trace.manifest["stored"],
        overloads=len({s.overload for s in trace.signatures.values()}),
        signatures=len(trace.signatures),
        nbytes=sum(trace.manifest["files"].values()),
        seconds=seconds,
        losses=losses,
        errors=trace.manifest["errors"],
    )
