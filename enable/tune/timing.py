"""Timers: one that has a child run kernels on a GPU, one that tells times again which were taken before.

Times that were taken are kept as JSON lines, a header and then a line for each measurement: by the texts of the
kernels, as their authors have them, and the number of rounds. With them a search is replayed where there is no GPU.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from enable.tune.profiler import profiled
from generate.kernel_library import Match
from generate.kernel_search.measurement import KernelTimer, Measurement, TimedKernel, TimedLaunch, TimedShape
from generate.kernel_search.search import TimingFailed
from generate.validation import check_version
from traces import TraceError, UserError, jsonable
from traces.format import write_durably
from traces.packaging import IMPORT_ROOT, qualified
from traces.subgraphs import definitions
from verify.platforms import Platform, Target
from verify.sandbox.wire import WireError, receive, send, send_packed

FORMAT, VERSION = "enable-times", 1
SECONDS = 600.0  # of one measurement, compilation included
PROFILED_SECONDS = 60.0  # of one call under a profiler
NO_TIMES = "a kernel takes no time there that means anything: Triton's interpreter runs it in Python"


class GpuTimer:
    """Times kernels in a child, on one device. kept: the file that measurements are appended to."""

    def __init__(self, place: str, kept: Path | None = None) -> None:
        self._place, self._kept = place, kept
        self._child: _ClockChild | None = None

    def __call__(self, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape], rounds: int) -> Measurement:
        """Of a kernel alone a profiler is asked, too. Raises TimingFailed if a kernel fails, or the child does."""
        dtypes = sorted({shape.dtype for shape in shapes if shape.flops})
        request = {"place": self._place, "rounds": rounds, "dtypes": dtypes}
        self._child = self._child or _ClockChild()
        try:
            answer = self._child.asked(request, kernels, shapes)
        except TimingFailed:  # a device may be of no more use to the process
            self.close()
            raise
        answer["device"] = {**answer["device"], "beside": beside()}
        answer["profile"] = self._profiled({**request, "rounds": 1}, kernels, shapes) if len(kernels) == 1 else ""
        found = Measurement.of_json(answer, "the timing child")
        if self._kept is not None:
            keep(self._kept, kernels, rounds, found)
        return found

    def _profiled(self, request: dict[str, Any], kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape]) -> str:
        def run(words: Sequence[str]) -> None:
            child = _ClockChild(words, PROFILED_SECONDS)
            try:
                child.asked(request, kernels, shapes[:1])
            finally:
                child.close()

        return profiled(run)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None


class RecordedTimer:
    """Tells the times of a file again. target: of the GPU that they were taken on."""

    def __init__(self, path: Path) -> None:
        """Raises UserError if it is not a file of times."""
        self._path, self._found = path, _recorded(path)
        self.target = next((m.device.target for m in self._found.values()), "")

    def __call__(self, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape], rounds: int) -> Measurement:
        """Raises TimingFailed where these kernels were not timed, or not on these shapes."""
        found = self._found.get(_key([k.sha256 for k in kernels], rounds))
        if found is None:
            told = ", ".join(k.sha256[:12] for k in kernels[:3])
            raise TimingFailed(
                f"{self._path}: no times of kernels {told} in {rounds} rounds; take them: --platform cuda"
            )
        lacking = [shape.name for shape in shapes if shape.name not in found.again]
        if lacking:
            raise TimingFailed(f"{self._path}: no times of {lacking[0]}; take them: --platform cuda")
        names = {shape.name for shape in shapes}
        times = tuple({n: t for n, t in each.items() if n in names} for each in found.times)
        return replace(found, times=times, again={n: t for n, t in found.again.items() if n in names})


def compiled_for(
    target: Target, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape]
) -> list[list[list[TimedLaunch]]]:
    """By shape and kernel the launches, compiled for a target; it takes no GPU. Raises TimingFailed if a kernel does
    not compile."""
    request = {"place": "cpu", "target": asdict(target)}
    child = _ClockChild()
    try:
        found = child.asked(request, kernels, shapes)["launches"]
    finally:
        child.close()
    return [[[TimedLaunch(**launch) for launch in of] for of in each] for each in found]


class _ClockChild:
    """One enable/tune/clock.py. wrap: words of a command under which it runs; seconds: that an answer may take."""

    def __init__(self, wrap: Sequence[str] = (), seconds: float = SECONDS) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(seconds)
        command = [*wrap, sys.executable, "-m", qualified("enable.tune.clock"), str(theirs.fileno())]
        path = os.pathsep.join([str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {"TRITON_DEFAULT_FP_FUSION": "1", **os.environ, "PYTHONPATH": path}  # as where kernels are judged
        environment.pop("TRITON_INTERPRET", None)
        with theirs:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=environment, stdout=subprocess.DEVNULL
            )

    def asked(
        self, request: dict[str, Any], kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape]
    ) -> dict[str, Any]:
        """Its answer. Raises TimingFailed."""
        overloads = sorted({shape.case.overload for shape in shapes})
        request = {
            **request,
            "kernels": [{o: _served(kernel.match(o), o) for o in overloads} for kernel in kernels],
            "shapes": [{"overload": s.case.overload, "name": s.name} for s in shapes],
            "subgraphs": [told for o in overloads for told in definitions(o)],
        }
        try:
            send(self._ours, request)
            for shape in shapes:
                send_packed(self._ours, {}, shape.case.load())
            answer, _ = receive(self._ours)
        except WireError as error:
            raise TimingFailed(f"the child that times kernels ended: {error}") from error
        if "error" in answer:
            raise TimingFailed(f"a kernel failed where it is timed: {answer['error']}")
        return answer

    def close(self) -> None:
        """End it."""
        self._ours.close()
        self._process.kill()
        self._process.wait()


def _served(match: Match | None, overload: str) -> dict[str, Any]:
    """How a kernel serves an overload, for the child."""
    if match is None:
        raise TimingFailed(f"{overload}: the kernel does not serve it")
    return {
        "plan": asdict(match.plan),
        **match.job.files,
        "takes_out": match.kernel.takes_out,
        "draws": match.kernel.draws,
    }


def keep(path: Path, kernels: Sequence[TimedKernel], rounds: int, found: Measurement) -> None:
    """Append a measurement to a file of times, durably."""
    lines = (
        path.read_text(encoding="utf-8").splitlines()
        if path.exists()
        else [_line({"format": FORMAT, "version": VERSION})]
    )
    told = {"kernels": [k.sha256 for k in kernels], "rounds": rounds, "measured": jsonable(found)}
    write_durably(path, [f"{line}\n".encode() for line in [*lines, _line(told)]])


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _recorded(path: Path) -> dict[str, Measurement]:
    try:
        first, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line] or [None]
        check_version(first, path, FORMAT, VERSION)
        return {
            _key(line["kernels"], line["rounds"]): Measurement.of_json(line["measured"], f"{path}: line {number}")
            for number, line in enumerate(lines, 2)
        }
    except (OSError, ValueError, KeyError, TypeError, TraceError) as error:
        raise UserError(f"{path}: not a file of times ({error!r}); `enable tune` on a GPU writes one") from error


def _key(digests: Sequence[str], rounds: int) -> str:
    return " ".join([*digests, str(rounds)])


def beside() -> int | None:
    """How many processes that are not ours have a GPU open; None where nobody can tell."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    command = [smi, "--query-compute-apps=pid", "--format=csv,noheader"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode:
        return None
    found = {int(word) for word in told.stdout.split() if word.isdigit()}
    return sum(not _is_ours(pid) for pid in found)


def _is_ours(pid: int) -> bool:
    """Whether a process is this one or comes of it; one of another container is not known here."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except OSError:
            return False
        pid = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))
    return False


@contextmanager
def timer_for(platform: Platform, times: Path | None, kept: Path | None) -> Iterator[KernelTimer]:
    """The timer that the user asked for. times: of which file; kept: where those of a GPU are kept. Raises UserError
    where there is no GPU and no file of times."""
    if times is not None:
        yield RecordedTimer(times)
        return
    if not platform.device:
        raise UserError(
            f"platform {platform.name}: {NO_TIMES}; "
            "pass --platform cuda on a machine with a GPU, or --times FILE to replay"
        )
    timer = GpuTimer(platform.devices()[0].place, kept)
    try:
        yield timer
    finally:
        timer.close()
