"""Export of one stored call as a directory that a vendor can run with PyTorch and safetensors alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pprint import pformat
from typing import Any

import torch
from safetensors.torch import save_file

from traces.errors import UserError
from traces.exchange import standalone
from traces.materialise import arguments_of, operator, run
from traces.overloads import moves_data, uninitialised, written
from traces.records import CallRecord
from traces.store import Trace

_PLACE = "CALL: dict[str, Any] = {}\n"
MAX_THREADS = 1024


def write_repro(trace: Trace, record: CallRecord, path: Path) -> None:
    """Write repro.py and tensors.safetensors into a new directory.

    The expected results are computed here, on the CPU.

    Args:
        trace: The trace that holds the call.
        record: The stored call.
        path: The directory to create.

    Raises:
        TraceError: If the trace does not hold the call's values.
        UserError: If the call cannot be run or the directory exists.
    """
    op = operator(record)
    packed = trace.packed(record)
    arguments = arguments_of(record, packed)
    threads = _threads(trace)
    try:
        with _set_threads(threads):
            result = run(trace, record, arguments)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0][:160]
        raise UserError(f"call {record.id} of {record.overload} does not run on the CPU here ({reason})") from error
    mutated = [name for name in sorted(written(op)) if arguments.get(name) is not None]
    results = standalone.flatten("return", result)
    results += [pair for name in mutated for pair in standalone.flatten(name, arguments[name])]
    data = {f"input.{i}": _bytes(d) for i, d in enumerate(packed.data) if d is not None and len(d)}
    if moves_data(op) and not uninitialised(op):
        data |= {f"expected.{name}": standalone.raw(v).clone() for name, v in results if isinstance(v, torch.Tensor)}
    if record.kind == "random":
        data["rng"] = _rng(trace, record)
    header = packed.header()
    described = {
        "overload": record.overload,
        "threads": threads,
        "arguments": header["tree"],
        "tensors": header["tensors"],
        "groups": [{"nbytes": g.nbytes, "align": g.align} for g in packed.groups],
        "mutated": mutated,
        "expected": {name: standalone.describe(value) for name, value in results},
    }
    _write(path, record, described, data)


def _write(path: Path, record: CallRecord, described: dict[str, Any], data: dict[str, torch.Tensor]) -> None:
    source = Path(standalone.__file__).read_text(encoding="utf-8")
    before, marker, after = source.partition(_PLACE)
    assert marker, "standalone.py has lost its place for the call"
    literal = pformat(described, width=112, compact=True, sort_dicts=False)
    try:
        path.mkdir(parents=True)
        (path / "repro.py").write_text(f"{before}CALL: dict[str, Any] = {literal}\n{after}", encoding="utf-8")
        save_file(data, path / "tensors.safetensors", metadata={"overload": record.overload})
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); pass --out DIR that does not exist") from error


def _bytes(data: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _rng(trace: Trace, record: CallRecord) -> torch.Tensor:
    """Return the state of the CPU generator with which `run` makes the call."""
    if record.rng is None or record.rng["device"] != "cpu":
        return torch.Generator().manual_seed(record.id).get_state()
    return _bytes(trace.blob(record.rng["blob"], record.rng["nbytes"], f"{record.where}: rng"))


def _threads(trace: Trace) -> int:
    count = trace.manifest.get("threads")
    return count if isinstance(count, int) and 0 < count <= MAX_THREADS else torch.get_num_threads()


@contextmanager
def _set_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
