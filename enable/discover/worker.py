"""Compile and run catalogue entries in processes that may crash or hang.

The worker imports torch and triton once. It forks a child that answers requests. If the child dies, the worker answers
for it and forks another one, so a crash of a compiler costs one entry. Run as `python -m enable.discover.worker`; the
requests on stdin and the answers on stdout are lines of JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMPILED, REFUSED, FAILED, CRASHED = "compiled", "refused", "failed", "crashed"  # answer statuses
LAST_WORDS = 2000  # log characters that a report shows
LOG_BYTES = 1 << 20  # a compiler that fails prints a whole module
MESSAGE = 300  # characters
REPEATS = 3  # timed launches after the first one
# exit statuses of a child: no more requests; a fresh child has to go on; the same, and the compiler works
_DONE, _ANSWERED, _WORKS = 0, 3, 4
_FILE = re.compile(r"(/[^/\s\"]*)*/?\b\d+_\d+\.py")  # in which `answer` writes a program


class WorkerJob:
    """The settings of a worker, from the first line on stdin.

    Attributes:
        target: Backend, arch, warp_size and shared_bytes to compile for; None if `device` decides.
        device: PyTorch device type on which entries run; "" to compile only.
        module: Python module that makes PyTorch know the device, or "".
        seconds: Time limit for an entry.
        directory: Directory for program files and results.
        simplest: Program that the worker compiles itself, if a child could, because the first compilation is slow.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self.target: dict[str, Any] | None = fields["target"]
        self.device: str = fields["device"]
        self.module: str = fields["module"]
        self.seconds: int = fields["seconds"]
        self.directory = Path(fields["directory"])
        self.simplest: str = fields["simplest"]

    def request(self) -> dict[str, Any]:
        """Return the request for the simplest program."""
        return {"number": 0, "text": self.simplest, "timed": False}

    def prepare(self) -> None:
        """Replace Triton's driver if entries are only compiled, or mend the interpreter."""
        import triton

        if os.environ.get("TRITON_INTERPRET") == "1":
            from verify.child.interpreter import mend
            from verify.child.libdevice import mend_libdevice
            from verify.child.unspecified import mend_undefined

            mend()
            mend_undefined()
            mend_libdevice()
        elif not self.device:
            from verify.child.compiling import CompileOnlyDriver

            assert self.target is not None
            triton.runtime.driver.set_active(CompileOnlyDriver(self.target))


def _remedy(error: str) -> str:
    """Return how to make a device known to PyTorch or to Triton; empty for other errors."""
    if error.startswith("Expected one of"):
        return "; name the Python module that makes PyTorch know it: --module NAME"
    if "active drivers" in error:
        return "; install the chip's Triton plugin, or compile only: --backend NAME --arch ARCH in place of --device"
    return ""


def describe(job: WorkerJob) -> dict[str, Any]:
    """Return the target and the versions, or the reason why nothing can be compiled."""
    import torch
    import triton

    answer: dict[str, Any] = {"triton": triton.__version__, "torch": torch.__version__}
    try:
        if job.module:
            sys.path.insert(0, str(Path.cwd()))
            importlib.import_module(job.module)
        if job.device:
            torch.empty(1, device=job.device)
        if job.device and job.target is None:
            target = triton.runtime.driver.active.get_current_target()
            properties = triton.runtime.driver.active.utils.get_device_properties(0)
            shared = {"shared_bytes": properties["max_shared_mem"]}
            job.target = {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size, **shared}
    except Exception as error:  # noqa: BLE001 - a device's module raises anything
        return answer | {"problem": f"device {job.device} cannot be used: {brief(error)}{_remedy(str(error))}"}
    answer["target"] = job.target
    assert job.target is not None
    try:
        from triton.backends.compiler import GPUTarget

        fields = (job.target["backend"], job.target["arch"], job.target["warp_size"])
        triton.compiler.make_backend(GPUTarget(*fields))
    except Exception as error:  # noqa: BLE001 - as above
        installed = ", ".join(sorted(triton.backends.backends))
        return answer | {"problem": brief(error), "installed": installed}
    return answer


def answer(job: WorkerJob, request: dict[str, Any]) -> dict[str, Any]:
    """Compile one program, run it if there is a device, and return the status."""
    import torch

    path = job.directory / f"{request['number']}_{os.getpid()}.py"
    path.write_text(request["text"])
    spec = importlib.util.spec_from_file_location("entry", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    started = time.monotonic()
    try:
        spec.loader.exec_module(module)
        arguments = module.inputs(job.device or "cpu")
        if os.environ.get("TRITON_INTERPRET") != "1":
            compiled = module.kernel.run(*arguments, grid=module.GRID, warmup=True, **module.META)
            _check_resources(compiled, job.target)
    except Exception as error:  # noqa: BLE001 - any exception of the compiler
        return _refusal(error)
    result: dict[str, Any] = {"status": COMPILED, "seconds": round(time.monotonic() - started, 3)}
    if not job.device:
        return result
    try:
        module.kernel[module.GRID](*arguments, **module.META)
        values = [x.cpu().clone() for x in arguments if isinstance(x, torch.Tensor)]
        result["milliseconds"] = _fastest(module, arguments, job.device) if request["timed"] else None
    except Exception as error:  # noqa: BLE001 - any exception of the driver
        return {"status": FAILED, "message": brief(error), "log": str(error)[-LAST_WORDS:]}
    result["values"] = str(path.with_suffix(".pt"))
    torch.save(values, result["values"])
    return result


def _fastest(module: Any, arguments: list[Any], device: str) -> float:
    """Return the milliseconds of the fastest launch."""
    import torch

    def synchronize() -> None:
        if device != "cpu":
            torch.accelerator.synchronize()

    times = []
    for _ in range(REPEATS):
        synchronize()
        started = time.perf_counter()
        module.kernel[module.GRID](*arguments, **module.META)
        synchronize()
        times.append(1000 * (time.perf_counter() - started))
    return min(times)


def _check_resources(compiled: Any, target: dict[str, Any] | None) -> None:
    """Raise an error if a program instance needs more than the target has."""
    from verify.child.compiling import MAX_THREADS, OutOfSharedMemory, TooManyThreads

    metadata = getattr(compiled, "metadata", None)
    if metadata is None or target is None:
        return
    threads = metadata.num_warps * target["warp_size"]
    if threads > MAX_THREADS:
        raise TooManyThreads(f"{threads} threads in a program; at most {MAX_THREADS}")
    if metadata.shared > target["shared_bytes"]:
        raise OutOfSharedMemory(f"{metadata.shared} bytes of shared memory; the target has {target['shared_bytes']}")


def brief(error: BaseException) -> str:
    """Return the line that says most about an exception: the innermost cause of a compiler's error."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {_diagnostic(lines) or lines[-1]}"[:MESSAGE]


def _diagnostic(lines: list[str]) -> str:
    """Return the first line of a log that reports an error, or ""."""
    for word in ("error", "assertion"):
        for line in lines:
            if word in line.lower():
                return line.strip()
    return ""


def _printed() -> str:
    """Return what this process and its compilers have printed for the current entry."""
    return os.pread(2, LOG_BYTES, 0).decode(errors="replace")


def _refusal(error: Exception) -> dict[str, Any]:
    """Return the answer for a program that the compiler refuses."""
    log, message = _printed(), brief(error)
    if "error" not in message.removeprefix(type(error).__name__):  # such as: PassManager::run failed
        message = f"{message}; {_diagnostic(log.splitlines())}".removesuffix("; ")[:MESSAGE]
    return {"status": REFUSED, "message": message, "log": f"{str(error)[-LAST_WORDS:]}\n{log[-LAST_WORDS:]}".strip()}


def _serve(job: WorkerJob, answers: int) -> int:
    """Answer requests until one fails, and return the child's exit status."""
    first = True
    while True:
        request = _line()
        if request is None:
            return _DONE
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)
        signal.alarm(job.seconds)  # its default action ends the process, also inside a compiler's code
        result = describe(job) if request.get("describe") else answer(job, request)
        signal.alarm(0)
        _write(answers, {**result, "fresh": first})
        if "describe" in request and "problem" not in result and not job.device:
            return _WORKS if answer(job, job.request())["status"] == COMPILED else _ANSWERED
        if not job.device or result.get("status") in (REFUSED, FAILED):
            return _ANSWERED  # a fresh process for each compilation, and after a device's error
        first = False


def _line() -> dict[str, Any] | None:
    """Read one request from stdin, unbuffered, because the next child reads the next one."""
    data = bytearray()
    while not data.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return None
        data += byte
    request: dict[str, Any] = json.loads(data)
    return request


def _write(descriptor: int, fields: dict[str, Any]) -> None:
    """Write an answer, whose texts name the program entry.py."""
    plain = {key: _FILE.sub("entry.py", value) if key in ("message", "log") else value for key, value in fields.items()}
    data = json.dumps(plain).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def _death(status: int, seconds: int) -> str:
    """Return how a child ended."""
    if os.WIFSIGNALED(status):
        ended_by = signal.Signals(os.WTERMSIG(status))
        return f"no answer within {seconds} s" if ended_by is signal.SIGALRM else f"killed by {ended_by.name}"
    return f"exited with status {os.waitstatus_to_exitcode(status)}"


def main() -> int:
    """Fork children until stdin ends."""
    fields = _line()
    if fields is None:
        return 0
    job = WorkerJob(fields)
    answers = os.dup(1)
    with tempfile.TemporaryFile(dir=job.directory) as log:
        os.dup2(log.fileno(), 2)  # the current entry's log, from compilers and kernels
        os.dup2(log.fileno(), 1)
    job.prepare()
    while True:
        pid = os.fork()
        if not pid:
            os._exit(_serve(job, answers))
        status = os.waitpid(pid, 0)[1]
        code = os.waitstatus_to_exitcode(status)
        if code == _DONE:
            return 0
        if code == _WORKS:
            answer(job, job.request())
        elif code != _ANSWERED:
            words, message = _printed(), _death(status, job.seconds)
            message = f"{message}: {_diagnostic(words.splitlines())}".removesuffix(": ")[:MESSAGE]
            _write(answers, {"status": CRASHED, "message": message, "log": words[-LAST_WORDS:]})


if __name__ == "__main__":
    sys.exit(main())
