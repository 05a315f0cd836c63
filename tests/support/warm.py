"""Python programs in processes of their own, forked from one that has imported torch: a start is paid for once."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

OURS = {str(Path(__file__).parent), str(Path(__file__).parents[2])}  # what pytest alone puts on the path


def python(*arguments: Any, cwd: Path, timeout: float = 240, **environment: str) -> CompletedProcess[str]:
    """What `python ARGUMENTS` does in a directory: a script, `-m MODULE` or `-c CODE`, with its arguments.

    environment: variables beside those of this process; what torch and Triton read when imported has no effect.
    Raises TimeoutError, and the process is gone, after `timeout` seconds.
    """
    command = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        process = _server().Process(target=_program, args=(command, cwd, {**os.environ, **environment}, out, err))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"{command} in {timeout} s: {out.read_text()}{err.read_text()}")
        return CompletedProcess(command, process.exitcode, out.read_text(), err.read_text())


@cache
def _server() -> ForkServerContext:
    """torch with what a first optimizer imports, and Triton as this process has it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch._dynamo"])
    return context


def _program(command: list[str], cwd: Path, environment: Mapping[str, str], out: Path, err: Path) -> None:
    """As the interpreter does it, with one thread to compute."""
    import torch  # which is there

    torch.set_num_threads(1)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for path, stream in ((out, sys.stdout), (err, sys.stderr)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY), stream.fileno())
    named = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    installed = [entry for entry in sys.path if entry not in OURS | set(named)]
    kind, *rest = command
    first = {"-m": str(cwd), "-c": ""}.get(kind, str(Path(kind).parent))
    sys.path[:] = [first, *named, *installed]
    try:
        if kind == "-m":
            sys.argv = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif kind == "-c":
            sys.argv = ["-c", *rest[1:]]
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = command
            runpy.run_path(kind, run_name="__main__")
    finally:
        atexit._run_exitfuncs()
