"""Recording training steps of a target."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from capture import sim
from capture.compiled import why_not
from capture.keys import MODULE
from capture.limits import Limits
from capture.recorder import Recorder
from capture.stance import force_eager
from capture.tape import of_this_rank
from capture.targets import CaptureTarget
from traces.errors import UserError
from traces.store import Trace
from traces.writer import remove_trace

LONG = 100  # steps of a GPU from which on keys are made in C++
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes in getrusage's unit of ru_maxrss


@dataclass(frozen=True)
class Summary:
    """What was recorded.

    computing: overloads that compute or draw. levels: stored calls by how much of their values is kept. nbytes: size of
    the trace on disk. seconds: for all of it. peak: bytes of memory this process had at most. device_peak: the same of
    the GPU's, None if none was used. losses: one a step, where steps give one. errors: of the recorder, by operator.
    """

    path: Path
    calls: int
    stored: int
    overloads: int
    computing: int
    signatures: int
    levels: dict[str, int]
    nbytes: int
    seconds: float
    peak: int
    device_peak: int | None
    losses: list[float]
    errors: dict[str, Any]


def check_path(path: str | os.PathLike[str], force: bool = False) -> None:
    """Raise UserError if a trace cannot go there because something else lies there."""
    path = Path(path)
    taken = path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir())))
    if taken and not force:
        raise UserError(f"{path} exists; pass --force to replace it or --out DIR to write elsewhere")


def capture_model(
    target: CaptureTarget,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: bool = True,
    native: Path | None = None,
    **limits: Any,
) -> Summary:
    """Run training steps from the start and record them; the trace appears at `path` when it is complete.

    The first step counts: it also runs what creates the optimizer's state. limits: fields of Limits; `steps` is 1 if
    not given, and the first `skip_steps` run unrecorded. force: replace an existing trace. progress: a bar on stderr
    after a second. native: as of Recorder; what is not there is built only for LONG steps or more of a GPU. In a job of
    several ranks each writes a trace of its own, as Recorder does. Raises UserError if the path is taken, if a step or
    the data fails, or if recording had to stop; what was recorded until then stays at `path`, marked as unfinished,
    unless something lay there.
    """
    bounds = Limits(**{"steps": 1, **limits})
    name, path = Path(path).name, Path(of_this_rank(os.fspath(path)))
    check_path(path, force)
    start = time.perf_counter()
    executing = sim.executing(sim.on_cpu) if target.device.startswith(sim.NAME) else nullcontext()
    # Skipped steps compile nothing either.
    with fresh_directory(path) as parent, executing, force_eager():
        recorder, losses = _record(target, parent / name, bounds, progress, worth_building(native, target, bounds))
        manifest = Trace.open(recorder.path, partial=True).manifest
        if manifest["state"] != "complete":
            raise UserError(_stopped(path, recorder))
        if not manifest["calls"]:
            raise UserError(f"{target.name}: nothing was recorded; look at --phase, --ops, and what the step runs")
    return _summarise(path, losses, time.perf_counter() - start)


def worth_building(directory: Path | None, target: CaptureTarget, bounds: Limits) -> Path | None:
    """The directory of Recorder's `native`, if what is there can be had, and is worth building or is built."""
    long = target.device.startswith("cuda") and (bounds.steps or 0) >= LONG
    if directory is None or why_not():
        return None
    return directory if long or MODULE.place(directory).is_file() else None


def _record(
    target: CaptureTarget, path: Path, bounds: Limits, progress: bool, native: Path | None
) -> tuple[Recorder, list[float]]:
    info = {"model": target.name, "settings": target.settings, "device": target.device, "steps": bounds.steps}
    assert bounds.steps is not None
    for _ in range(bounds.skip_steps):
        _step(target, _next_batch(target), lambda name: nullcontext())
    # Steps are counted here, so that skipped ones cost no recording.
    limits = {k: v for k, v in asdict(bounds).items() if k not in ("steps", "skip_steps")}
    recorder = Recorder(path, model=target.training.model, info=info, native=native, **limits)
    losses: list[float] = []
    hidden = None if progress else True  # None: unless stderr is a terminal
    steps = tqdm(range(bounds.steps), desc=f"capture {target.name}", unit="step", delay=1, disable=hidden)
    with _no_warnings_of(path.parent), recorder:
        for _ in steps:
            with recorder.pause():  # the loading of data is no part of the step
                batch = _next_batch(target)
            loss = _step(target, batch, recorder.phase)
            recorder.step()
            with recorder.pause():
                losses += _number(loss)
    return recorder, losses


def _step(target: CaptureTarget, batch: Any, phase: Any) -> Any:
    try:
        return target.training.step(batch, phase)
    except (RuntimeError, MemoryError, OverflowError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"{target.name}: a training step failed ({reason}); see: enable models") from error


def _next_batch(target: CaptureTarget) -> Any:
    try:
        return next(target.training.batches)
    except StopIteration as error:
        raise UserError(f"{target.name}: its data end before the last step; ask for fewer with --steps") from error
    except (ValueError, RuntimeError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"{target.name}: no batch can be had ({reason}); see: enable models") from error


def _number(loss: Any) -> list[float]:
    """The loss of a step, if that is what the step returned."""
    if isinstance(loss, torch.Tensor):
        return [float(loss.item())] if loss.numel() == 1 and not loss.is_complex() else []
    return [float(loss)] if isinstance(loss, int | float) else []


@contextmanager
def _no_warnings_of(directory: Path) -> Iterator[None]:
    """Silence what the recorder warns of an incomplete trace in there, which is told as an error."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", rf"{re.escape(str(directory))}.* is incomplete", RuntimeWarning)
        yield


def _stopped(path: Path, recorder: Recorder) -> str:
    """Keep an unfinished trace where nothing is in its way; returns what to tell the user."""
    where = "nothing was replaced"
    if not path.exists():
        os.rename(recorder.path, path)
        where = "what was recorded until then is there, marked as unfinished"
    reasons = [f"{name}: {found['first']}" for name, found in recorder.errors.items()]
    if recorder.failure is not None:
        reasons = [f"{type(recorder.failure).__name__}: {recorder.failure}"]
    return f"{path}: recording stopped after errors ({'; '.join(reasons)[:300]}); {where}"


@contextmanager
def fresh_directory(path: Path) -> Iterator[Path]:
    """A directory beside `path`; what has its name there is moved to it at the end, and nothing else is left.

    Of several that are under way for one path the first that ends wins. Raises UserError for the others, if nothing can
    be written, and if what lies at `path` is no trace.
    """
    before = _identity(path)
    created = [p for p in path.parents if not p.exists()]  # innermost first
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        parent = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise UserError(f"{path}: cannot write here ({error.strerror}); choose another place with --out DIR") from error
    try:
        yield parent
        with _alone(path.parent):
            if _identity(path) != before:
                raise UserError(
                    f"{path}: another recording was put there meanwhile, and stays; this one was not kept; record it "
                    "under another name with --name, or again with --force"
                )
            if before is not None:
                remove_trace(path)
            os.rename(parent / path.name, path)
    finally:
        shutil.rmtree(parent)
        with suppress(OSError):  # the first that holds something
            for directory in created:
                directory.rmdir()


def _identity(path: Path) -> tuple[int, int] | None:
    """What lies at a path: another recording there is another directory. None: nothing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep other recordings from putting anything into the directory."""
    held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _summarise(path: Path, losses: list[float], seconds: float) -> Summary:
    trace = Trace.open(path)
    return Summary(
        path=path,
        calls=trace.manifest["calls"],
        stored=trace.manifest["stored"],
        overloads=len({s.overload for s in trace.signatures.values()}),
        computing=len({s.overload for s in trace.signatures.values() if s.computes}),
        signatures=len(trace.signatures),
        levels=trace.manifest.get("levels", {}),
        nbytes=sum(trace.manifest["files"].values()),
        seconds=seconds,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT,
        device_peak=_device_peak(),
        losses=losses,
        errors=trace.manifest["errors"],
    )


def _device_peak() -> int | None:
    used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.max_memory_allocated() if used else None
