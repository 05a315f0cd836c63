"""Cases once more on a GPU, on CUDA under compute-sanitizer: one that crashed, or some that passed (`--sanitize`).

Elsewhere, and without compute-sanitizer on the PATH, launches block, so that the error is raised by the launch that
made it. The core dump of the driver is not used: of driver 580 cuda-gdb 13 fails to read it, and writing it ends the
process too early.
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

SECONDS = 300.0  # compute-sanitizer slows a launch down by some 10 times, and torch takes its time to start
MOST_ERRORS = 3  # that are reported; after the first others are often its consequences

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
    """A report, fit for a prompt, on a case that ends in an error of the device, or a sentence that it does not.

    Raises UserError where this machine has no such sandbox, or the case took over SECONDS.
    """
    said, names = replayed(job, [case], device, sandbox, "memcheck")
    return f"{anonymous(_report(said, names, job.kernel.source))}\n\n{inputs_report(case.load())}"


def sanitized(job: Job, cases: Sequence[Case], device: Device, sandbox: str, tool: str) -> tuple[Case, str] | None:
    """The first of these cases in which compute-sanitizer's tool finds something, and a report on it; None if in none.

    tool: memcheck, or racecheck for races in a program's shared memory. Raises UserError where this machine has no
    such sandbox or no compute-sanitizer, the cases took over SECONDS, or they end otherwise than without the tool.
    """
    if sanitizer() is None:
        raise UserError(f"--sanitize runs compute-sanitizer, which is not on the PATH; {HOW_TO_GET}")
    said, names = replayed(job, cases, device, sandbox, tool)
    first = _ERROR.search(said)
    begun = [int(number) for number in re.findall(rf"^{CASE}(\d+)$", said[: first.start() if first else None], re.M)]
    if first and begun:
        case = cases[begun[-1]]
        return case, f"{anonymous(_report(said, names, job.kernel.source))}\n\n{inputs_report(case.load())}"
    if f"{CASE}{len(cases) - 1}\n" not in said or not re.search(_NO_ERRORS, said):
        lines = [line for line in said.strip().split("\n") if line and not line.startswith("=====")]
        errors = [line for line in lines if re.search("error", line, re.IGNORECASE)]
        last = anonymous(" ".join([*errors, *lines, "it said nothing"][0].split()))
        raise UserError(f"compute-sanitizer's {tool} did not come to the end of {len(cases)} cases: {last}")
    return None


def sanitizer() -> str | None:
    """The path of compute-sanitizer: the one on the PATH, or of NVIDIA's package for pip."""
    found = shutil.which("compute-sanitizer")
    packaged = (path for entry in sys.path for path in Path(entry).glob("nvidia/*/bin/compute-sanitizer"))
    return found or next((str(path) for path in packaged if os.access(path, os.X_OK)), None)


def replayed(job: Job, cases: Sequence[Case], device: Device, sandbox: str, tool: str) -> tuple[str, dict[int, str]]:
    """All that was said by a process that runs the cases, watched by this tool of compute-sanitizer if that is there;
    and the names of arguments by their addresses."""
    confine.level(sandbox)
    with tempfile.TemporaryDirectory(prefix="enable-cuda-") as name:
        directory = Path(name)
        told = []
        with (directory / "cases.bin").open("wb") as raw:
            for case in cases:
                packed = case.load()
                philox = Pairs(job.kernel.key, case.id)[0] if job.kernel.draws else None
                sizes = [None if data is None else len(data) for data in packed.data]
                told.append({"packed": packed.header(), "sizes": sizes, "philox": philox})
                raw.writelines(bytes(data) for data in packed.data if data is not None)
        fields = {
            "device": asdict(device),
            "plan": asdict(job.plan),
            "takes_out": job.kernel.takes_out,
            "sources": {"kernel": job.kernel.source} | ({"copy": job.copy.source} if job.copy else {}),
            "cases": told,
        }
        (directory / "cases.json").write_text(json.dumps(fields))
        replay = [sys.executable, "-P", "-m", qualified("verify.debugging.cuda_replay"), name, sandbox]
        watcher = sanitizer()
        options = ["--tool", tool, "--target-processes", "application-only", "--print-limit", "20"]  # not ptxas
        watched = [watcher, *options, *replay] if watcher else replay
        said = _output(watched, _environment(directory, device))
        places = directory / "places.json"
        names = {int(k): v for k, v in json.loads(places.read_text()).items()} if places.is_file() else {}
    return said, names


def _environment(directory: Path, device: Device) -> dict[str, str]:
    """Nothing of the user's but the search paths and what the driver needs."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": confine.search_path(),
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "TRITON_CACHE_DIR": str(directory / "triton"),
        "CUDA_LAUNCH_BLOCKING": "1",
        "HIP_LAUNCH_BLOCKING": "1",
        "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",  # each tensor an allocation of its own
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


def _report(said: str, names: dict[int, str], source: str) -> str:
    """The errors that compute-sanitizer found; without them the end of what was said, if it tells of an error."""
    starts = [m.start() for m in _ERROR.finditer(said)]
    blocks = [said[a:b] for a, b in pairwise([*starts, len(said)])]
    found: dict[str, str] = {}  # by what is the same for every thread
    for block in (_block(b, names, source) for b in blocks):
        found.setdefault(_THREAD.sub("", block), block)
    if found:
        return "\n\n".join(["compute-sanitizer says:", *list(found.values())[:MOST_ERRORS]])
    told = [line for line in _PREFIX.sub("", said).strip().split("\n")[-30:] if not _SUMMARY.match(line)]
    if not any(re.search(r"error|exception|signal|terminate", line, re.IGNORECASE) for line in told):
        return "Run once more under the debugger of CUDA, the case ended without an error."
    line = next(iter(_LINE.findall("\n".join(told))), None)
    shown = [snippet(source, int(line))] if line else []
    return "\n".join(["CUDA says:", *told, *shown])


def _block(block: str, names: dict[int, str], source: str) -> str:
    """One error: what, where, by which thread, beside which argument; with the line of source."""
    text = _PREFIX.sub("", _HOST.sub("", block)).strip()

    def named(match: re.Match[str]) -> str:
        whose = names.get(int(match[1], 16))
        return f"memory of argument {whose}," if whose else "memory that is no argument's,"

    line = next(iter(_LINE.findall(text)), None)
    shown = snippet(source, int(line)) if line else ""
    return "\n".join(filter(None, (_ALLOCATION.sub(named, text).replace("kernel.py", "kernel file"), shown)))
