"""Run one program on one side: in the simulator, through the compiler alone, or on a GPU.

Each side needs its own process, because Triton decides at its import whether kernels are interpreted.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.differential.dtypes import BOOL, SIGN_OF_ZERO
from benchmarks.differential.programs import Program, generate, values

SIM, COMPILE, GPU = "sim", "compile", "gpu"
OK, REFUSED, FAILED = "ok", "refused", "failed"
TARGET: dict[str, Any] = {"backend": "cuda", "arch": 90, "warp_size": 32}
MAX_MESSAGE = 2000  # characters


@dataclass
class Answer:
    """Results from one side.

    Attributes:
        status: OK, REFUSED (by the compiler) or FAILED.
        message: Error, if any.
        results: Bytes for each result buffer, in Program.results' order.
        fused: The same, if the simulator fuses products with sums.
        noisy: The same for each run with noise.
    """

    status: str
    message: str = ""
    results: list[bytes] = field(default_factory=list)
    fused: list[bytes] = field(default_factory=list)
    noisy: list[list[bytes]] = field(default_factory=list)


def runner(side: str) -> Callable[[int, int], Answer]:
    """Prepare this process for a side, and return a function that runs the program with a seed and an index."""
    os.environ["TRITON_INTERPRET"] = "1" if side == SIM else "0"
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    run = {SIM: _simulator, COMPILE: _compiler, GPU: _gpu}[side]()
    directory = Path(tempfile.mkdtemp(prefix="differential-"))

    def guarded(seed: int, index: int) -> Answer:
        program = generate(seed, index)
        try:
            return run(program, seed, directory)
        except Exception as error:  # noqa: BLE001 - a generated program may fail, which is its outcome
            return Answer(FAILED, _text(error))

    return guarded


def _text(error: BaseException) -> str:
    cause = error.__cause__ or error
    return f"{type(error).__name__}: {error or cause}"[:MAX_MESSAGE]


def _kernel(program: Program, directory: Path, noise: bool = False) -> Any:
    """Return a program's kernel; Triton reads its text from a file."""
    name = f"{program.name}{'_noise' * noise}"
    path = directory / f"{name}.py"
    path.write_text(program.source(noise))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, program.name)


def _tensors(program: Program, seed: int, device: str) -> list[Any]:
    """Return a program's buffers."""
    import torch

    tensors = []
    for position, buffer in enumerate(program.buffers):
        numbers = torch.from_numpy(values(seed, program.index, position, buffer))
        dtype = torch.bool if buffer.dtype == BOOL else getattr(torch, buffer.dtype)
        tensors.append(numbers.to(dtype).to(device))
    return tensors


def _contents(program: Program, tensors: list[Any]) -> list[bytes]:
    """Return the result buffers' bytes."""
    import torch

    results = [t for t, buffer in zip(tensors, program.buffers, strict=True) if buffer.taints is not None]
    return [t.cpu().contiguous().view(torch.uint8).numpy().tobytes() for t in results]


def _simulator() -> Callable[[Program, int, Path], Answer]:
    """Prepare the interpreter as a child of the judge does for the platform sim."""
    from verify.child.numerics import patch_numerics
    from verify.child.serve import prepare
    from verify.child.simulator import simulator
    from verify.limits import ChipLimits
    from verify.platforms import EXECUTE

    prepare(EXECUTE)
    patch_numerics(ChipLimits(), {TARGET["backend"]})

    def launch(kernel: Any, program: Program, seed: int, hardware: bool = False) -> list[bytes]:
        tensors = _tensors(program, seed, "cpu")
        simulator.configure(0, 1, [], {}, hardware)
        with np.errstate(all="ignore"):
            kernel[program.grid](*tensors, **program.arguments())
        return _contents(program, tensors)

    def run(program: Program, seed: int, directory: Path) -> Answer:
        from benchmarks.differential import allowances

        kernel = _kernel(program, directory)
        answer = Answer(OK, results=launch(kernel, program, seed))
        if program.allowances - {SIGN_OF_ZERO}:
            answer.fused = launch(kernel, program, seed, hardware=True)
            noisy = _kernel(program, directory, noise=True)
            for number in range(allowances.RUNS):
                allowances.reseed(number)
                answer.noisy.append(launch(noisy, program, seed))
        return answer

    return run


def _compiler() -> Callable[[Program, int, Path], Answer]:
    """Prepare the compiler for a GPU that this machine need not have."""
    from triton.runtime import driver

    from verify.child.compiling import CompileOnlyDriver

    driver.set_active(CompileOnlyDriver(dict(TARGET)))

    def run(program: Program, seed: int, directory: Path) -> Answer:
        return _compiled(_kernel(program, directory), program, _tensors(program, seed, "cpu")) or Answer(OK)

    return run


def _compiled(kernel: Any, program: Program, tensors: list[Any]) -> Answer | None:
    """Compile a program; return an answer if the compiler refuses it."""
    try:
        kernel.warmup(*tensors, **program.arguments(), grid=program.grid, num_warps=program.num_warps)
    except Exception as error:  # noqa: BLE001 - the compiler refuses by exceptions
        return Answer(REFUSED, _text(error))
    return None


def _gpu() -> Callable[[Program, int, Path], Answer]:
    """Prepare this process for the current CUDA device."""
    import torch

    def run(program: Program, seed: int, directory: Path) -> Answer:
        kernel, tensors = _kernel(program, directory), _tensors(program, seed, "cuda")
        refusal = _compiled(kernel, program, tensors)
        if refusal is not None:
            return refusal
        kernel[program.grid](*tensors, **program.arguments(), num_warps=program.num_warps)
        torch.cuda.synchronize()
        return Answer(OK, results=_contents(program, tensors))

    return run
