"""Record a target's training steps, as `enable capture` does it."""

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
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from capture.compiled import why_not
from capture.host_fallback import computing_on_host
from capture.keys import MODULE
from capture.limits import PHASES, Limits
from capture.recorder import Recorder
from capture.stance import force_eager
from capture.tape import of_this_rank
from capture.targets import CaptureTarget
from traces.errors import UserError, choose_from, did_you_mean
from traces.program import program_name
from traces.store import Trace
from traces.writer import remove_trace

LONG = 100  # GPU steps from which building the C++ key module pays off
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes in getrusage's unit for ru_maxrss


@dataclass(frozen=True)
class Summary:
    """Result of a recording.

    Attributes:
        path: Directory of the trace.
        calls: Call count.
        stored: Stored calls.
        overloads: Distinct overloads.
        computing: Distinct overloads that compute or draw.
        signatures: Distinct signatures.
        levels: Stored calls by level, that is, how much of their values is kept.
        nbytes: Size of the trace on disk.
        seconds: Duration of the whole recording.
        peak: Peak memory of this process, in bytes.
        device_peak: Peak memory allocated on the GPU, in bytes; None if no GPU was used.
        losses: One for each step that returned a loss.
        errors: Errors in the recorder itself, by operator.
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
    """Raise UserError if something else occupies the path of a new trace."""
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

    The first step is recorded too, because it creates the optimizer's state. In a distributed job with several ranks
    each writes its own trace, as Recorder does.

    Args:
        target: The program to record.
        path: Directory of the trace.
        force: Replace an existing trace.
        progress: Show a progress bar on stderr after one second.
        native: As for Recorder; a missing module is built only for LONG or more steps on a GPU.
        **limits: Fields of Limits. `steps` defaults to 1; the first `skip_steps` steps run unrecorded.

    Returns:
        Summary: Counts, sizes and losses.

    Raises:
        UserError: If the path is occupied, a step or the data fails, nothing was recorded, or recording had to stop.
            In the last case the partial trace is kept at `path`, marked as unfinished, unless something else is there.
    """
    bounds = Limits(**{"steps": 1, **limits})
    name, path = Path(path).name, Path(of_this_rank(os.fspath(path)))
    check_path(path, force)
    check_filters(target, bounds)
    start = time.perf_counter()
    executing = computing_on_host(target.device)
    # Skipped steps are not compiled either.
    with fresh_directory(path) as parent, executing, force_eager():
        recorder, losses = _record(target, parent / name, bounds, progress, worth_building(native, target, bounds))
        manifest = Trace.open(recorder.path, partial=True).manifest
        if manifest["state"] != "complete":
            raise UserError(_stopped(path, recorder))
        if not manifest["calls"]:
            raise UserError(f"{target.name}: nothing was recorded: {recorder.emptiness()}")
    return _summarise(path, losses, time.perf_counter() - start)


def check_filters(target: CaptureTarget, limits: Limits) -> None:
    """Raise UserError for a phase that the target cannot have, or a pattern that matches no operator.

    A phase is checked for a model of the zoo only, because other programs may name phases of their own.
    """
    for phase in limits.phases if ":" not in target.name else ():
        if phase not in PHASES:
            raise UserError(f"{target.name} has no phase {phase!r}{choose_from(phase, PHASES)}")
    names: list[str] = torch._C._dispatch_get_all_op_names()
    for pattern in limits.ops:
        # operators of other libraries may be registered only when the step runs
        if pattern.startswith("aten::") and not any(fnmatchcase(name, pattern) for name in names):
            bare = [name.removeprefix("aten::") for name in names]
            near = did_you_mean(pattern.removeprefix("aten::"), bare) or "; write it like aten::mm or aten::*backward*"
            raise UserError(f"no operator of PyTorch matches --ops {pattern!r}{near}")


def worth_building(directory: Path | None, target: CaptureTarget, bounds: Limits) -> Path | None:
    """Return the directory for Recorder's `native`, or None.

    It is returned if a compiler is available, and the module is either built already or worth building.
    """
    long = target.device.startswith("cuda") and (bounds.steps or 0) >= LONG
    if directory is None or why_not():
        return None
    return directory if long or MODULE.built_path(directory).is_file() else None


def _record(
    target: CaptureTarget, path: Path, bounds: Limits, progress: bool, native: Path | None
) -> tuple[Recorder, list[float]]:
    info = {"model": target.name, "settings": target.settings, "device": target.device, "steps": bounds.steps}
    assert bounds.steps is not None
    for _ in range(bounds.skip_steps):
        _step(target, _next_batch(target), lambda name: nullcontext())
    # Steps are skipped and counted here, so that skipped ones cost no recording.
    limits = {k: v for k, v in asdict(bounds).items() if k not in ("steps", "skip_steps")}
    recorder = Recorder(path, model=target.training.model, info=info, native=native, **limits)
    losses: list[float] = []
    hidden = None if progress else True  # None shows the bar only if stderr is a terminal
    steps = tqdm(range(bounds.steps), desc=f"capture {target.name}", unit="step", delay=1, disable=hidden)
    with _no_warnings_of(path.parent), recorder:
        for _ in steps:
            with recorder.pause():  # loading data is not part of the step
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
        raise UserError(f"{target.name}: a training step failed ({reason}); see: {program_name()} models") from error


def _next_batch(target: CaptureTarget) -> Any:
    try:
        return next(target.training.batches)
    except StopIteration as error:
        raise UserError(f"{target.name}: its data end before the last step; ask for fewer with --steps") from error
    except (ValueError, RuntimeError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"{target.name}: no batch can be had ({reason}); see: {program_name()} models") from error


def _number(loss: Any) -> list[float]:
    """Return the loss of a step in a list, or an empty list if the step did not return a number."""
    if isinstance(loss, torch.Tensor):
        return [float(loss.item())] if loss.numel() == 1 and not loss.is_complex() else []
    return [float(loss)] if isinstance(loss, int | float) else []


@contextmanager
def _no_warnings_of(directory: Path) -> Iterator[None]:
    """Silence the recorder's warnings about an incomplete or empty trace, because errors report them instead."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", rf"{re.escape(str(directory))}.*(is incomplete|nothing was recorded)", RuntimeWarning
        )
        yield


def _stopped(path: Path, recorder: Recorder) -> str:
    """Move an unfinished trace to its path if that is free, and return the message for the user."""
    where = "nothing was replaced"
    if not path.exists():
        os.rename(recorder.path, path)
        where = "what was recorded until then is there, marked as unfinished"
    reasons = [f"{name}: {error['first']}" for name, error in recorder.errors.items()]
    if recorder.failure is not None:
        reasons = [f"{type(recorder.failure).__name__}: {recorder.failure}"]
    return f"{path}: recording stopped after errors ({'; '.join(reasons)[:300]}); {where}"


@contextmanager
def fresh_directory(path: Path) -> Iterator[Path]:
    """Yield a directory beside `path`; at the end, the entry in it with the same name is moved to `path`.

    Everything else in the directory is deleted. If several run for one path, the first to finish wins.

    Raises:
        UserError: If another one finished first, nothing can be written, or `path` is occupied by anything but a trace.
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
        with suppress(OSError):  # stops at the first directory that is not empty
            for directory in created:
                directory.rmdir()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the identity of the entry at a path, or None. It changes if another recording replaces the entry."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold an exclusive lock on the directory, so that no other recording adds an entry."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
