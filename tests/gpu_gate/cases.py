"""The gate's cases of a kernel file: samples of OpInfo, spread over its dtypes, and a few that are made of these.

Choosing runs every sample of an operator on the CPU, which takes seconds. So many processes do it at once, each leaves
its choice in a file, and the next run reads it.
"""

from __future__ import annotations

import base64
import json
import math
import multiprocessing
import runpy
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tests.gpu_gate.page import name_of
from tests.kernels.conftest import ROOT as DATA
from tests.kernels.conftest import case_of
from traces import UserError
from traces.format import write_durably
from traces.values import Bytes, Packed
from verify import cases
from verify.cases.case import Case, by_overload, case_of_packed
from verify.cases.extended import extended
from verify.cases.samples import opinfo_cases
from verify.contract.kernel_file import KernelFile
from verify.meaning import digest

SAMPLES = 6  # of OpInfo, of a file with few dtypes; of one with more, one of each dtype
MOST_OF_A_DTYPE = 3
EXTENDED = 3  # of a file. Three targets take 1 s of a core a case, so 5,000 cases take 16 cores six minutes
MADE = 24  # that these are taken from: the first are alike, each of another dtype
SEED = 0  # as `enable verify`, whose first extended cases these are


def choose(kernel: KernelFile) -> list[Case]:
    """Return the cases of a kernel file.

    An overload without a sample has those calls of its data in tests/kernels that are in the overload's own form.
    """
    given = opinfo_cases(list(kernel.overloads), kernel.dtypes)
    lacking = set(kernel.overloads) - {case.overload for case in given}
    given += _of_data(kernel, lacking) if lacking else []
    chosen = spread(given, kernel.dtypes)
    for of_one in by_overload(given).values():
        made = [variant.case for variant in extended(of_one, SEED, kernel.written, MADE)]
        chosen += evenly(made, max(1, EXTENDED // len(kernel.overloads)))
    return list({case.id: case for case in chosen}.values())


def spread(given: Sequence[Case], dtypes: Sequence[str]) -> list[Case]:
    """Return up to MOST_OF_A_DTYPE cases of each dtype, by size from the smallest to the largest, and at least the
    largest of each overload."""
    by_dtype: dict[str, list[Case]] = {}
    for case in sorted(given, key=_elements):
        by_dtype.setdefault(next((d for d in dtypes if d in case.dtypes), ""), []).append(case)
    most = max(1, min(MOST_OF_A_DTYPE, SAMPLES // max(1, len(by_dtype))))
    chosen = [case for several in by_dtype.values() for case in evenly(several, most)]
    largest = {case.overload: case for case in sorted(given, key=_elements)}
    have = {case.overload for case in chosen}
    return chosen + [case for overload, case in largest.items() if overload not in have]


def evenly(several: Sequence[Case], most: int) -> list[Case]:
    """Return so many cases at even distances, the last one among them; all if there are fewer."""
    most = min(most, len(several))
    places = {len(several) - 1 - (len(several) - 1) * i // max(1, most - 1) for i in range(most)}
    return [several[place] for place in sorted(places)]


def _elements(case: Case) -> int:
    return sum(map(math.prod, case.shapes))


def _of_data(kernel: KernelFile, overloads: set[str]) -> list[Case]:
    said = runpy.run_path(str(_data_file(kernel)))
    calls, forward = said.get("CASES", {}), said.get("FORWARD", {})
    return [case_of(o, call, forward.get(o)) for o in sorted(overloads & calls.keys()) for call in calls[o]]


def _data_file(kernel: KernelFile) -> Path:
    return DATA / f"{name_of(kernel)}.py"


class Cases:
    """The chosen cases of kernel files, kept in a directory by all that they depend on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def of(self, kernel: KernelFile) -> list[Case]:
        """Return the cases of a file that was prepared."""
        return [_case(row) for row in json.loads(self._path(kernel).read_text(encoding="utf-8"))]

    def prepare(self, kernels: Sequence[KernelFile], processes: int, step: Callable[[str], None]) -> None:
        """Choose the cases of the files that have none yet. step: called with the name of each as it has.

        Raises UserError if a process dies that chooses some.
        """
        missing = []
        for kernel in kernels:
            if self._path(kernel).is_file():
                step(name_of(kernel))
            else:
                missing.append(kernel)
        if not missing:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(missing)), context, initializer=_begin) as pool:
            futures = {pool.submit(_keep, kernel, self._path(kernel)): name_of(kernel) for kernel in missing}
            try:
                for future in as_completed(futures):
                    future.result()
                    step(futures[future])
            except BrokenProcessPool as error:
                raise UserError("a process in which PyTorch makes samples died; run the gate again") from error
            except BaseException:  # as Ctrl-C: nobody waits for what is being chosen
                pool.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise

    def _path(self, kernel: KernelFile) -> Path:
        parts = [torch.__version__.split("+")[0], kernel.written, _data_file(kernel).read_text(encoding="utf-8")]
        return self._directory / f"{digest([*parts, _makers()])[:32]}.json"


@cache
def _makers() -> str:
    """Return a digest of what makes cases."""
    made_by = [Path(__file__), DATA / "conftest.py", *sorted(Path(cases.__file__).parent.glob("*.py"))]
    return digest(path.read_text(encoding="utf-8") for path in made_by)


def _begin() -> None:
    """Prepare a process: Ctrl-C is for the one that waits, and one thread is enough for small tensors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def _keep(kernel: KernelFile, path: Path) -> None:
    write_durably(path, [json.dumps([_row(case) for case in choose(kernel)]).encode()])


def _row(case: Case) -> dict[str, Any]:
    packed = case.load()
    data = [None if span is None else base64.b64encode(span).decode() for span in packed.data]
    return {"overload": case.overload, "signature": case.signature, "packed": packed.header(), "data": data}


def _case(row: Mapping[str, Any]) -> Case:
    data: list[Bytes | None] = [None if span is None else base64.b64decode(span) for span in row["data"]]
    packed = Packed.from_header(row["packed"], data, f"kept case of {row['overload']}")
    return replace(case_of_packed(row["overload"], packed), signature=row["signature"])
