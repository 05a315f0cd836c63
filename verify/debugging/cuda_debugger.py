"""Rerun cases on a GPU: one that crashed, or some that passed (`--sanitize`).

On CUDA they run under compute-sanitizer. On other devices, or if compute-sanitizer is not on the PATH, launches
block, so that an error is raised by the launch that caused it. The driver's core dump is not used: cuda-gdb 13
cannot read those from driver 580, and writing one ends the process too early.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from traces import UserError
from traces.packaging import qualified
from verify.cases.case import Case
from verify.debugging.cuda_replay import CASE
from verify.excerpts import anonymous, snippet
from verify.judging.job import Job
from verify.judging.random_judging import Pairs
from verify.judging.reports import inputs_report
from verify.platforms import Device
from verify.sandbox import confine

SECONDS = 300.0  # compute-sanitizer slows a launch down about 10 times, and torch needs time to start
MOST_ERRORS = 3  # errors to report; later ones are often consequences of the first

HOW_TO_GET = "install it with NVIDIA's CUDA toolkit, or: pip install nvidia-cuda-sanitizer-api-cu12"

_ERROR = re.compile(
    r"^=+ (?=(?:(?:Error: )?Race|Invalid|Misaligned|Uninitialized|Illegal|Stack|Program hit)\b)", re.MULTILINE
)
_NO_ERRORS = r"(?m)^=+ (?:ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: .*\(0 errors?, .*)$"
_PREFIX = re.compile(r"^=+ ?", re.MULTILINE)
_LINE = re.compile(r"(?:\bkernel\.py:|^  line )(\d+)", re.MULTILINE)
_ALLOCATION = re.compile(r"nearest allocation at 0x([0-9a-f]+)")
_THREAD = re.compile(r"^ *by thread .*\n", re.MULTILINE)
_SUMMARY = re.compile(r"^(COMPUTE-SANITIZER|ERROR SUMMARY: 0 errors)$")
_HOST = re.compile(r"\n[^\n]*(?:Saved host backtrace|Host Frame:).*", re.DOTALL)


def debug_cuda(job: Job, case: Case, device: Device, sandbox: str = confine.FULL) -> str:
    """Return a report on a case that ends in a device error, or a sentence that no error occurred.

    The report fits into a prompt.

    Args:
        job: Kernel and plan.
        case: Case to rerun.
        device: Device to run it on.
        sandbox: `full` or `none`.

    Raises:
        UserError: The sandbox is not available on this machine, or the case took more than SECONDS.
    """
    output, names = replayed(job, [case], device, sandbox, "memcheck")
    return f"{anonymous(_report(output, names, job.kernel.source))}\n\n{inputs_report(case.load())}"


def sanitized(job: Job, cases: Sequence[Case], device: Device, sandbox: str, tool: str) -> tuple[Case, str] | None:
    """Return the first case in which a compute-sanitizer tool finds an error, with a report, or None.

    Args:
        job: Kernel and plan.
        cases: Cases to run.
        device: Device to run them on.
        sandbox: `full` or `none`.
        tool: `memcheck`, or `racecheck` for races in the shared memory of a program instance.

    Raises:
        UserError: The sandbox or compute-sanitizer is missing, the cases took more than SECONDS, or they end
            differently than without the tool.
    """
    if sanitizer() is None:
        raise UserError(f"--sanitize runs compute-sanitizer, which is not on the PATH; {HOW_TO_GET}")
    output, names = replayed(job, cases, device, sandbox, tool)
    first = _ERROR.search(output)
    begun = [int(number) for number in re.findall(rf"^{CASE}(\d+)$", output[: first.start() if first else None], re.M)]
    if first and begun:
        case = cases[begun[-1]]
        return case, f"{anonymous(_report(output, names, job.kernel.source))}\n\n{inputs_report(case.load())}"
    if f"{CASE}{len(cases) - 1}\n" not in output or not re.search(_NO_ERRORS, output):
        lines = [line for line in output.strip().split("\n") if line and not line.startswith("=====")]
        errors = [line for line in lines if re.search("error", line, re.IGNORECASE)]
        last = anonymous(" ".join([*errors, *lines, "it said nothing"][0].split()))
        raise UserError(f"compute-sanitizer's {tool} did not come to the end of {len(cases)} cases: {last}")
    return None


def sanitizer() -> str | None:
    """Return the path to compute-sanitizer, from the PATH or from NVIDIA's pip package."""
    installed = shutil.which("compute-sanitizer")
    packaged = (path for entry in sys.path for path in Path(entry).glob("nvidia/*/bin/compute-sanitizer"))
    return installed or next((str(path) for path in packaged if os.access(path, os.X_OK)), None)


def replayed(job: Job, cases: Sequence[Case], device: Device, sandbox: str, tool: str) -> tuple[str, dict[int, str]]:
    """Run the cases in a process under compute-sanitizer, if it is available.

    Returns:
        The output, and the names of the arguments by their addresses.
    """
    confine.level(sandbox)
    with tempfile.TemporaryDirectory(prefix="enable-cuda-") as name:
        directory = Path(name)
        encoded = []
        with (directory / "cases.bin").open("wb") as raw:
            for case in cases:
                packed = case.load()
                philox = Pairs(job.kernel.key, case.id)[0] if job.kernel.draws else None
                sizes = [None if data is None else len(data) for data in packed.data]
                encoded.append({"packed": packed.header(), "sizes": sizes, "philox": philox})
                raw.writelines(bytes(data) for data in packed.data if data is not None)
        fields = {
            "device": asdict(device),
            "plan": asdict(job.plan),
            "takes_out": job.kernel.takes_out,
            "sources": {"kernel": job.kernel.source} | ({"copy": job.copy.source} if job.copy else {}),
            "cases": encoded,
        }
        (directory / "cases.json").write_text(json.dumps(fields))
        replay = [sys.executable, "-P", "-m", qualified("verify.debugging.cuda_replay"), name, sandbox]
        watcher = sanitizer()
        # this excludes ptxas
        options = ["--tool", tool, "--target-processes", "application-only", "--print-limit", "20"]
        watched = [watcher, *options, *replay] if watcher else replay
        output = _output(watched, _environment(directory, device))
        addresses = directory / "places.json"
        names = {int(k): v for k, v in json.loads(addresses.read_text()).items()} if addresses.is_file() else {}
    return output, names


def _environment(directory: Path, device: Device) -> dict[str, str]:
    """Return an environment with only the search paths and the variables that the driver needs."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": confine.search_path(),
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "TRITON_CACHE_DIR": str(directory / "triton"),
        "CUDA_LAUNCH_BLOCKING": "1",
        "HIP_LAUNCH_BLOCKING": "1",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",  # gives each tensor its own allocation
        **{k: os.environ[k] for k in device.environment if k in os.environ},
    }


def _output(command: list[str], environment: dict[str, str]) -> str:
    try:
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"the debugger of CUDA took over {SECONDS:g} s for one case; its report is left out") from error
    return ended.stdout + ended.stderr


def _report(output: str, names: dict[int, str], source: str) -> str:
    """Return the errors that compute-sanitizer found, or else the end of an output that mentions an error."""
    starts = [m.start() for m in _ERROR.finditer(output)]
    blocks = [output[a:b] for a, b in pairwise([*starts, len(output)])]
    errors: dict[str, str] = {}  # keyed by the text without the thread, so that each error appears once
    for block in (_block(b, names, source) for b in blocks):
        errors.setdefault(_THREAD.sub("", block), block)
    if errors:
        return "\n\n".join(["compute-sanitizer says:", *list(errors.values())[:MOST_ERRORS]])
    tail = [line for line in _PREFIX.sub("", output).strip().split("\n")[-30:] if not _SUMMARY.match(line)]
    if not any(re.search(r"error|exception|signal|terminate", line, re.IGNORECASE) for line in tail):
        return "Run once more under the debugger of CUDA, the case ended without an error."
    line = next(iter(_LINE.findall("\n".join(tail))), None)
    shown = [snippet(source, int(line))] if line else []
    return "\n".join(["CUDA says:", *tail, *shown])


def _block(block: str, names: dict[int, str], source: str) -> str:
    """Return one error with its location, thread, the nearest argument, and the source line."""
    text = _PREFIX.sub("", _HOST.sub("", block)).strip()

    def named(match: re.Match[str]) -> str:
        whose = names.get(int(match[1], 16))
        return f"memory of argument {whose}," if whose else "memory that is no argument's,"

    line = next(iter(_LINE.findall(text)), None)
    shown = snippet(source, int(line)) if line else ""
    return "\n".join(filter(None, (_ALLOCATION.sub(named, text).replace("kernel.py", "kernel file"), shown)))
