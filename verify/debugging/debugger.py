"""Rerun a case that crashed or hung, and report the position of the kernel.

For a crash, the report has the program instance, the source line, and the Python and native backtraces. For a
case that did not end, it has the position shortly before the deadline. Reports contain no path, address or time
from this machine.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from verify.cases.case import Case
from verify.child.witness import RECORD
from verify.excerpts import anonymous, snippet
from verify.judging.job import Job
from verify.judging.job_run import Run
from verify.judging.rerun import RERUN
from verify.linking import told_line
from verify.outcome import Outcome, Verdict
from verify.platforms import COMPILE, Platform
from verify.sandbox.children import Zygote
from verify.sandbox.confine import FULL

SECONDS = 20.0  # for one request; enough to detect a loop that does not end
MOST_TEXT = 1 << 20  # bytes read from the child's log
MOST_FRAMES = 12  # frames of a backtrace to report
LONG = 0.5  # fraction of the deadline that one program instance took
_ENDED = (Outcome.CRASH, Outcome.TIMEOUT)

_PYTHON = re.compile(r'^  File "(.*)", line (\d+) in (\S+)$', re.MULTILINE)
_NATIVE = re.compile(r"^ ?frame #\d+: (.+) \+ 0x[0-9a-f]+ \(0x[0-9a-f]+ in (.+)\)$", re.MULTILINE)
_OURS = re.compile(r"/job-[^/]+/[^/]+/(\w+)\.py$")  # the files that `verify.child.serve` loads
_TRAMPOLINE = 2  # number of native frames from the handler's `raise` to the interrupted function


@dataclass(frozen=True)
class Record:
    """Last note of a child (verify/child/witness.py).

    Attributes:
        kernel: Kernel name; empty if none was launched.
        launches: How many launches there were so far.
        began: Fraction of the deadline that had passed when the program instance began.
        program: Grid index for the program instance.
        number: Its position among `programs`, counted from 1; 0 if none ran.
        programs: How many program instances the launch has.
    """

    kernel: str
    launches: int
    began: float
    program: tuple[int, ...] = ()
    number: int = 0
    programs: int = 0

    @classmethod
    def read(cls, fields: Any) -> Record:
        """Validate a record; raise ValueError if it is invalid, because the child can write anything to the file."""
        kinds = {"kernel": str, "launches": int, "began": int | float, "program": list, "number": int, "programs": int}
        if not isinstance(fields, dict) or not {"kernel", "launches", "began"} <= fields.keys() <= kinds.keys():
            raise ValueError("no record")
        if not all(isinstance(value, kinds[name]) for name, value in fields.items()):
            raise ValueError("a record with other values")
        return cls(**{**fields, "program": tuple(fields.get("program", ()))})


@dataclass(frozen=True)
class Frame:
    """One Python frame; `role` names the job's file (`kernel` for the candidate's own), or is '' for other files."""

    file: str
    line: int
    function: str
    role: str


def debug(platform: Platform, job: Job, case: Case, verdict: Verdict, sandbox: str = FULL) -> str:
    """Return a report that fits into a prompt, on a case whose verdict is CRASH or TIMEOUT.

    For any other verdict, the verdict's own report is returned. The case is rerun from compilation on, in new
    children.

    Args:
        platform: Platform that judged the case.
        job: Kernel and plan.
        case: Case to rerun.
        verdict: The case's first verdict.
        sandbox: `full` or `none`.

    Raises:
        UserError: The sandbox is not available.
        TraceError: The trace is damaged.
    """
    if verdict.outcome not in _ENDED:
        return verdict.report
    with ExitStack() as stack:
        modes = {COMPILE: None, platform.mode: next(iter(platform.devices()), None)}
        zygotes = {mode: stack.enter_context(closing(Zygote(mode, sandbox, d))) for mode, d in modes.items()}
        return explain(platform, job, case, verdict, zygotes)


def explain(platform: Platform, job: Job, case: Case, verdict: Verdict, zygotes: dict[str, Zygote]) -> str:
    """Return the report of `debug`, with children of these zygotes, one for each mode."""
    limits = {f: min(SECONDS, getattr(platform, f)) for f in ("compile_seconds", "execute_seconds")}
    job = replace(job, off=job.off | {RERUN})  # the case ends before this layer is reached
    with tempfile.TemporaryFile() as log, Run(job, replace(platform, **limits), zygotes, log.fileno()) as run:
        return _report(verdict, run.judge(case).verdict, job, log)


def _report(verdict: Verdict, again: Verdict, job: Job, log: BinaryIO) -> str:
    if again.outcome not in _ENDED:
        ended = f"When the case was run once more it ended with {again.outcome}: {again.detail}"
        return "\n\n".join(dict.fromkeys((verdict.report, ended, again.report))).strip()
    record, text = _words(log)
    frames = _python_frames(text)
    _, _, arguments = again.report.partition("\n\n")
    how = verdict.detail if again.outcome is verdict.outcome else f"{verdict.detail}; run once more: {again.detail}"
    parts = [
        f"{how}\n{_where(record, again)}",
        _source(frames, job),
        _listed("Python, innermost call first:", _shown_frames(frames, job)),
        _listed("native code, innermost call first:", _native_frames(text)),
        arguments,
    ]
    return "\n\n".join(filter(None, parts))


def _words(log: BinaryIO) -> tuple[Record | None, str]:
    """Return the last record and the text after it; a child may have written anything instead."""
    raw = os.pread(log.fileno(), MOST_TEXT, 0)
    try:
        record = Record.read(json.loads(raw[:RECORD]))
    except ValueError:
        record = None
    return record, raw[RECORD:].decode(errors="replace")


def _where(record: Record | None, again: Verdict) -> str:
    """Describe in one or two sentences which kernel ran."""
    if record is None:
        return "It ended before the case began."
    if not record.kernel:
        return "No kernel had been launched."
    hung = again.outcome is Outcome.TIMEOUT
    if not record.number:
        doing = "compiled" if again.detail.startswith(COMPILE) else "launched"
        more = " The wrapper goes on launching." if hung and record.began >= LONG else ""
        return f"{record.kernel} was being {doing} (launch {record.launches} of the call).{more}"
    prefix = f"{record.kernel} ran, launch {record.launches} of the call: program {record.program}"
    text = f"{prefix}, number {record.number} of {record.programs} in the order they run."
    if not hung:
        return text
    if record.began < LONG:
        return f"{text} It had run most of the time: it holds a loop that does not end, or a very long one."
    return f"{text} Programs end, but there are too many of them, or of launches: let one program do more."


def _python_frames(text: str) -> list[Frame]:
    """Return the Python frames, innermost first, up to the outermost frame of the candidate."""
    frames = []
    for file, line, function in _PYTHON.findall(text):
        ours = _OURS.search(file)
        frames.append(Frame(file, int(line), function, ours[1] if ours else ""))
    last = max((i for i, frame in enumerate(frames) if frame.role), default=-1)
    return frames[: last + 1]


def _source(frames: list[Frame], job: Job) -> str:
    """Return the kernel-file line that was running, with its context."""
    frame = next((f for f in frames if f.role == "kernel"), None)
    return f"{_shown_frame(frame, job)}:\n{snippet(job.kernel.source, frame.line)}" if frame else ""


def _shown_frame(frame: Frame, job: Job) -> str:
    if frame.role:
        file = job.copy if frame.role == "copy" else job.kernel
        line = told_line(file.source, frame.line) if file else f"line {frame.line}"
        return f"{frame.role} file, {line}, {frame.function}"
    return f"{anonymous(frame.file)}, {frame.function}"


def _shown_frames(frames: list[Frame], job: Job) -> list[str]:
    """Return the candidate's frames, preceded by the innermost few frames that it called."""
    first = next((i for i, frame in enumerate(frames) if frame.role), 0)
    return [_shown_frame(frame, job) for i, frame in enumerate(frames) if frame.role or i < min(first, 3)][:MOST_FRAMES]


def _native_frames(text: str) -> list[str]:
    """Return the interrupted native function and its callers, as `symbol in library`.

    The list ends at Python's own frames. Repeated frames are listed once.
    """
    block = text[text.find(" frame #0:") :].partition("\n\n")[0].partition("<omitting python frames>")[0]
    frames = [f"{symbol} in {library.rpartition('/')[2]}" for symbol, library in _NATIVE.findall(block)]
    raised = next((i for i, frame in enumerate(frames) if frame.startswith("gsignal ")), -1)
    interrupted = frames[raised + _TRAMPOLINE :] if raised >= 0 else frames
    distinct = [f for i, f in enumerate(interrupted) if i == 0 or f != interrupted[i - 1]]
    return [anonymous(frame) for frame in distinct[:MOST_FRAMES]]


def _listed(head: str, lines: list[str]) -> str:
    return "\n".join([head, *(f"  {line}" for line in lines)]) if lines else ""
