"""The debugger on a GPU: a case that crashed, once more there, on CUDA under compute-sanitizer.

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
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from traces import UserError
from verify.cases.case import Case
from verify.excerpts import anonymous, snippet
from verify.judging.job import Job
from verify.judging.random_judging import Pairs
from verify.judging.reports import inputs_report
from verify.platforms import Device
from verify.sandbox import confine

SECONDS = 300.0  # compute-sanitizer slows a launch down by some 10 times, and torch takes its time to start
MOST_ERRORS = 3  # that are reported; after the first others are often its consequences

_ERROR = re.compile(r"^=+ (?=(?:Invalid|Misaligned|Uninitialized|Illegal|Stack|Program hit)\b)", re.MULTILINE)
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
    confine.level(sandbox)
    packed = case.load()
    with tempfile.TemporaryDirectory(prefix="enable-cuda-") as name:
        directory = Path(name)
        sources = {"kernel": job.kernel.source} | ({"copy": job.copy.source} if job.copy else {})
        sizes = [None if data is None else len(data) for data in packed.data]
        fields = {
            "device": asdict(device),
            "plan": asdict(job.plan),
            "takes_out": job.kernel.takes_out,
            "sizes": sizes,
            "sources": sources,
            "philox": Pairs(job.kernel.sha256, case.id)[0] if job.kernel.draws else None,
        }
        (directory / "case.json").write_text(json.dumps({**fields, "packed": packed.header()}))
        (directory / "case.bin").write_bytes(b"".join(bytes(data) for data in packed.data if data is not None))
        said = _run(directory, sandbox, device)
        places = directory / "places.json"
        names = {v: k for k, v in json.loads(places.read_text()).items()} if places.is_file() else {}
        report = anonymous(_report(said, names, job.kernel.source))
    return f"{report}\n\n{inputs_report(packed)}"


def _run(directory: Path, sandbox: str, device: Device) -> str:
    """All that the process and its debugger said."""
    replay = [sys.executable, "-P", "-m", "verify.debugging.cuda_replay", str(directory), sandbox]
    sanitizer = shutil.which("compute-sanitizer")
    watched = [sanitizer, "--tool", "memcheck", "--print-limit", "20", *replay] if sanitizer else replay
    return _output(watched, _environment(directory, device))


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
