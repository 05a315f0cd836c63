"""Timers for kernels: one lets a child process run them on a GPU, one replays recorded times.

Recorded times are JSON lines, first a header and then one line per measurement. The key consists of the kernels' source
digests and the number of rounds. With such a file, a search can be replayed without a GPU.
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
from traces.program import program_name
from traces.subgraphs import definitions
from verify.platforms import Platform, Target
from verify.sandbox.wire import WireError, receive, send, send_packed

FORMAT, VERSION = "enable-times", 1
SECONDS = 600.0  # limit for one measurement, including compilation
PROFILED_SECONDS = 60.0  # limit for one call under a profiler
NO_TIMES = "a kernel takes no time there that means anything: Triton's interpreter runs it in Python"


class GpuTimer:
    """Times kernels in a child process on one device; appends measurements to the file `kept`."""

    def __init__(self, device: str, kept: Path | None = None) -> None:
        self._device, self._kept = device, kept
        self._child: _ClockChild | None = None

    def __call__(self, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape], rounds: int) -> Measurement:
        """Time the kernels; a single kernel is profiled, too.

        Raises:
            TimingFailed: A kernel or the child fails.
        """
        dtypes = sorted({shape.dtype for shape in shapes if shape.flops})
        request = {"place": self._device, "rounds": rounds, "dtypes": dtypes}
        self._child = self._child or _ClockChild()
        try:
            answer = self._child.asked(request, kernels, shapes)
        except TimingFailed:  # the process may no longer be able to use the device
            self.close()
            raise
        answer["device"] = {**answer["device"], "beside": beside()}
        answer["profile"] = self._profiled({**request, "rounds": 1}, kernels, shapes) if len(kernels) == 1 else ""
        measurement = Measurement.of_json(answer, "the timing child")
        if self._kept is not None:
            keep(self._kept, kernels, rounds, measurement)
        return measurement

    def _profiled(self, request: dict[str, Any], kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape]) -> str:
        """Profile the first shape in a child of its own."""

        def run(words: Sequence[str]) -> None:
            child = _ClockChild(words, PROFILED_SECONDS)
            try:
                child.asked(request, kernels, shapes[:1])
            finally:
                child.close()

        return profiled(run)

    def close(self) -> None:
        """End the child process, if there is one."""
        if self._child is not None:
            self._child.close()
            self._child = None


class RecordedTimer:
    """Replays a file's times; `target` is the GPU on which they were measured."""

    def __init__(self, path: Path) -> None:
        """Read the file; raise UserError if it is not a file of times."""
        self._path, self._measurements = path, _recorded(path)
        self.target = next((m.device.target for m in self._measurements.values()), "")

    def __call__(self, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape], rounds: int) -> Measurement:
        """Return the recorded times.

        Raises:
            TimingFailed: These kernels were not timed, or not on these shapes.
        """
        measurement = self._measurements.get(_key([k.sha256 for k in kernels], rounds))
        if measurement is None:
            digests = ", ".join(k.sha256[:12] for k in kernels[:3])
            raise TimingFailed(
                f"{self._path}: no times of kernels {digests} in {rounds} rounds; take them: --platform cuda"
            )
        missing = [shape.name for shape in shapes if shape.name not in measurement.again]
        if missing:
            raise TimingFailed(f"{self._path}: no times of {missing[0]}; take them: --platform cuda")
        names = {shape.name for shape in shapes}
        times = tuple({n: t for n, t in each.items() if n in names} for each in measurement.times)
        return replace(measurement, times=times, again={n: t for n, t in measurement.again.items() if n in names})


def compiled_for(
    target: Target, kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape]
) -> list[list[list[TimedLaunch]]]:
    """Compile kernels for a target without a GPU; return the launches by shape and kernel.

    Raises:
        TimingFailed: A kernel does not compile.
    """
    request = {"place": "cpu", "target": asdict(target)}
    child = _ClockChild()
    try:
        answers = child.asked(request, kernels, shapes)["launches"]
    finally:
        child.close()
    return [[[TimedLaunch(**launch) for launch in of] for of in each] for each in answers]


class _ClockChild:
    """A process that runs enable/tune/clock.py.

    `wrap` are the leading words of its command, such as a profiler's. An answer may take `seconds`.
    """

    def __init__(self, wrap: Sequence[str] = (), seconds: float = SECONDS) -> None:
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(seconds)
        command = [*wrap, sys.executable, "-m", qualified("enable.tune.clock"), str(theirs.fileno())]
        path = os.pathsep.join([str(IMPORT_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        # as in the processes that judge kernels
        environment = {"TRITON_DEFAULT_FP_FUSION": "1", **os.environ, "PYTHONPATH": path}
        environment.pop("TRITON_INTERPRET", None)
        with theirs:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=environment, stdout=subprocess.DEVNULL
            )

    def asked(
        self, request: dict[str, Any], kernels: Sequence[TimedKernel], shapes: Sequence[TimedShape]
    ) -> dict[str, Any]:
        """Send a request and return the answer. Raise TimingFailed on an error."""
        overloads = sorted({shape.case.overload for shape in shapes})
        request = {
            **request,
            "kernels": [{o: _served(kernel.match(o), o) for o in overloads} for kernel in kernels],
            "shapes": [{"overload": s.case.overload, "name": s.name} for s in shapes],
            "subgraphs": [definition for o in overloads for definition in definitions(o)],
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
        """Kill the process."""
        self._ours.close()
        self._process.kill()
        self._process.wait()


def _served(match: Match | None, overload: str) -> dict[str, Any]:
    """Describe for the child how a kernel serves an overload."""
    if match is None:
        raise TimingFailed(f"{overload}: the kernel does not serve it")
    return {
        "plan": asdict(match.plan),
        **match.job.files,
        "takes_out": match.kernel.takes_out,
        "draws": match.kernel.draws,
    }


def keep(path: Path, kernels: Sequence[TimedKernel], rounds: int, measurement: Measurement) -> None:
    """Append a measurement durably to a file of times."""
    lines = (
        path.read_text(encoding="utf-8").splitlines()
        if path.exists()
        else [_line({"format": FORMAT, "version": VERSION})]
    )
    record = {"kernels": [k.sha256 for k in kernels], "rounds": rounds, "measured": jsonable(measurement)}
    write_durably(path, [f"{line}\n".encode() for line in [*lines, _line(record)]])


def _line(value: Any) -> str:
    """Return the value as compact JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _recorded(path: Path) -> dict[str, Measurement]:
    """Read a file of times. Raise UserError if it has another format."""
    try:
        first, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line] or [None]
        check_version(first, path, FORMAT, VERSION)
        return {
            _key(line["kernels"], line["rounds"]): Measurement.of_json(line["measured"], f"{path}: line {number}")
            for number, line in enumerate(lines, 2)
        }
    except (OSError, ValueError, KeyError, TypeError, TraceError) as error:
        raise UserError(
            f"{path}: not a file of times ({error!r}); `{program_name()} tune` on a GPU writes one"
        ) from error


def _key(digests: Sequence[str], rounds: int) -> str:
    """Return the key for a list of kernels."""
    return " ".join([*digests, str(rounds)])


def beside() -> int | None:
    """Return how many processes other than ours have a GPU open; None if it is unknown."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    command = [smi, "--query-compute-apps=pid", "--format=csv,noheader"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        return None
    pids = {int(word) for word in process.stdout.split() if word.isdigit()}
    return sum(not _is_ours(pid) for pid in pids)


def _is_ours(pid: int) -> bool:
    """Return True if a process is this one or a descendant; processes in other containers are unknown here."""
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
    """Yield the timer that the user chose.

    Args:
        platform: Platform on which to time.
        times: File of recorded times to replay, or None.
        kept: File to which GPU measurements are appended, or None.

    Raises:
        UserError: There is neither a GPU nor a file of times.
    """
    if times is not None:
        yield RecordedTimer(times)
        return
    if not platform.run_device:
        raise UserError(
            f"platform {platform.name}: {NO_TIMES}; "
            "pass --platform cuda on a machine with a GPU, or --times FILE to replay"
        )
    timer = GpuTimer(platform.devices()[0].place, kept)
    try:
        yield timer
    finally:
        timer.close()
