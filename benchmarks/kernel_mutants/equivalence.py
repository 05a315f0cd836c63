"""Decide if a mutant is the original: every launch of the judged cases has the same PTX, grid and arguments.

Both programs run in processes of their own, in which launches compile and do not run, as in the judge's compiling
child. Integers are compiled as they are, because a mutant may differ only for sizes that are no multiple of 16.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from traces.contents import NotRecorded
from traces.values import Packed
from verify.cases.case import Case
from verify.cases.packed import unsupported
from verify.judging.case_run import drawing, pairs_of
from verify.judging.job import Job
from verify.judging.repeats import configured
from verify.judging.trial import KernelTrial
from verify.platforms import COMPILE, Platform

# Lines of PTX that only name positions in the source: comments, files, locations and debug sections.
_POSITIONS = re.compile(r"(?m)^\s*(//|\.loc\b|\.file\b).*\n|//.*$|\.section\s+\.debug[^{]*\{[^}]*\}|^\$L__tmp\d+:\n")
# Lines of a program are no part of an error's meaning.
_LINES = re.compile(r"\bline \d+|at \d+:\d+")
READ = "read"  # marks an answer of a wrapper that read numbers back, which no kernel has computed here


def is_equivalent(
    original: KernelTrial, mutant: KernelTrial, platform: Platform, cache: Path, is_device: bool, seconds: float
) -> bool:
    """Return True if every case of the mutant's trial has the same launches for both programs.

    Args:
        original: Trial of the original, whose cases are ignored.
        mutant: Trial of the mutant, with the cases that it judges.
        platform: Platform whose first target is compiled for.
        cache: Directory for PTX.
        is_device: True if the change is in a kernel. Otherwise a wrapper that reads numbers back is never equivalent.
        seconds: Time limit; a comparison that takes longer counts as a difference.
    """
    end = time.monotonic() + seconds
    for overload, cases in mutant.cases.items():
        jobs = [trial.job(overload, cases) for trial in (original, mutant)]
        # both draw the same numbers, although a key depends on the kernel
        requests = [(packed, _request(jobs[0], case)) for case in cases if (packed := _arguments(case)) is not None]
        with _answering(jobs[0], platform, cache) as one, _answering(jobs[1], platform, cache) as other:
            for packed, request in requests:
                answers = []
                for connection in (one, other):  # in turn, so that the mutant finds what the original compiled
                    connection.send((packed, request))
                    if not connection.poll(max(0.0, end - time.monotonic())):
                        return False
                    answers.append(connection.recv())
                if answers[0] != answers[1] or READ in answers[0] and not is_device:
                    return False
    return True


def _arguments(case: Case) -> Packed | None:
    """Return a case's arguments, or None if it was skipped because they are unknown."""
    try:
        packed = case.load()
    except NotRecorded:
        return None
    return None if unsupported(packed.tree) else packed


def _request(job: Job, case: Case) -> dict[str, Any]:
    return {**drawing(job, configured(case.id, 0), pairs_of(job, case)[0]), "log": True}


@contextmanager
def _answering(job: Job, platform: Platform, cache: Path) -> Iterator[Connection]:
    """Provide a connection to a process that describes a job's launches."""
    header = {
        "plan": asdict(job.plan),
        **job.files,
        "takes_out": job.kernel.takes_out,
        "own_defaults": not job.strict,
        "targets": [asdict(platform.targets[0])],
        "alignment": platform.alignment,
        "cache": str(cache.absolute()),
    }
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, header), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.kill()
        process.join()


def _serve(connection: Connection, header: dict[str, Any]) -> None:
    """Answer requests with a description of their launches, until the parent closes the connection."""
    os.environ["TRITON_INTERPRET"] = "0"
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    warnings.simplefilter("ignore")
    os.environ["TRITON_CACHE_DIR"] = header["cache"]
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        describe = _prepared({**header, "directory": directory})
        try:
            while True:
                connection.send(describe(*connection.recv()))
        except (EOFError, OSError):
            return


def _prepared(job: dict[str, Any]) -> Any:
    """Patch Triton's compiler to record PTX, and return a function that describes the launches of one request."""
    from triton import knobs
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.runtime.jit import JITFunction

    from verify.child import compiling, serve
    from verify.limits import ChipLimits

    serve.prepare(COMPILE)
    texts: list[str] = []
    compile_launch = JITFunction.run

    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = compile_launch(self, *args, **kwargs)
        texts.append(_normal(compiled.asm["ptx"]))
        return compiled

    JITFunction.run = recorded
    CUDABackend.make_cubin = lambda *args, **kwargs: b"none"  # PTX is compared, so machine code is not needed
    compiling.patch_compiler(job["targets"], ChipLimits())
    compiling._usual = lambda value: value  # integers as they are
    knobs.compilation.store_binary_only = False
    runner = serve.KernelRunner(job, COMPILE)

    def describe(packed: Packed, request: dict[str, Any]) -> list[str]:
        texts.clear()
        try:
            reply, answer = runner.run(request, packed)
        except Exception as error:  # noqa: BLE001 - the program's error is its answer
            return [f"{type(error).__name__}: {_LINES.sub('', str(error))}", *map(_digest, texts)]
        log = json.dumps(reply["log"], sort_keys=True)
        marks = [READ] if any(READ in event for event in reply["log"]["events"]) else []
        data = [hashlib.sha256(d).hexdigest() if d is not None else "" for d in answer.data]
        # without `align` of the groups, which is the address that an allocation happened to get
        form = json.dumps([answer.tree, [vars(t) for t in answer.tensors]], default=str)
        return [*marks, _digest(log), _digest(form), *data, *map(_digest, texts)]

    return describe


def _normal(ptx: str) -> str:
    """Return PTX without the positions in the source that it names."""
    return "\n".join(line.strip() for line in _POSITIONS.sub("", ptx).split("\n") if line.strip())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
