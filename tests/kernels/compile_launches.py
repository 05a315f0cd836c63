"""Compile the launches of the kernels' cases for sm_90 with whichever Triton comes first on PYTHONPATH, and run none.

    pip download triton==3.6.0 --no-deps -d wheel && python -m zipfile -e wheel/triton-*.whl older
    chmod -R +x older/triton/backends/nvidia/bin
    PYTHONPATH=older:. python -m tests.kernels.compile_launches matmul/ attention/

Needs no GPU. Takes the first and the last case of each overload, of all files or of those whose path holds one of
the texts. Prints each call of which a launch does not compile, and ends with status 1 then. A wrapper that reads a size
back from the device ends early, since nothing has run: what it launches later is not compiled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)  # before Triton is imported
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import runpy  # noqa: E402

import triton  # noqa: E402
from triton.compiler.errors import CompilationError  # noqa: E402
from triton.runtime import driver  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

from enable.serve.modules import load_wrapper  # noqa: E402
from generate import BLOCKS  # noqa: E402
from generate.kernel_library import KERNELS  # noqa: E402
from tests.kernels.conftest import arguments_of  # noqa: E402
from traces.overloads import bind, positional, resolve  # noqa: E402
from verify.child.compiling import CompileOnlyDriver  # noqa: E402
from verify.contract.kernel_file import KernelFile  # noqa: E402

HERE = Path(__file__).parent
TARGET = {"backend": "cuda", "arch": 90, "warp_size": 32}


def main(names: Sequence[str]) -> int:
    """Compile the launches of the files named and print those that do not compile; 1 if there are any."""
    driver.set_active(CompileOnlyDriver(TARGET))
    run = JITFunction.run
    JITFunction.run = lambda self, *args, grid, warmup, **named: run(self, *args, grid=grid, warmup=True, **named)
    files = [p for p in sorted(KERNELS.glob("*/*.py")) if not names or any(n in str(p) for n in names)]
    refused = 0
    for line, compiles in (found for path in files for found in ends(path)):
        sys.stdout.write(f"{line[:300]}\n")
        refused += not compiles
    sys.stdout.write(f"triton {triton.__version__}: {len(files)} files, {refused} calls do not compile\n")
    return 1 if refused else 0


def ends(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield a line for each call of a kernel file that raises, and whether all that it launched compiles."""
    kernel = KernelFile.read(path, (BLOCKS,))
    wrapper, said = load_wrapper(path, kernel.source), runpy.run_path(str(HERE / path.relative_to(KERNELS)))
    for overload, calls in said.get("CASES", {}).items():
        if overload not in kernel.overloads:
            continue
        for number in dict.fromkeys((0, len(calls) - 1)):
            given = arguments_of(overload, calls[number], said.get("FORWARD", {}).get(overload))
            try:
                launch(wrapper, overload, given, {"philox": (1, 2)} if kernel.draws else {})
            except Exception as error:  # noqa: BLE001 - what no kernel has made is no size and no factor
                compiles = not isinstance(error, CompilationError) and "PassManager" not in str(error)
                reason = "ends early" if compiles else "does not compile"
                text = " ".join(str(error.__cause__ or error).split())
                yield f"{path.relative_to(KERNELS)}: {overload}, case {number} {reason}: {text[-200:]}", compiles


def launch(wrapper: Any, overload: str, given: dict[str, Any], more: dict[str, Any]) -> None:
    """Call a wrapper with all arguments of its overload."""
    op = resolve(overload)
    args, kwargs = positional(op, bind(op, (), given))
    wrapper(*args, **kwargs, **more)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
