"""BackendBench's two file formats for operator calls: text by operator, and parquet.

The text looks like this:

    Operator: aten.add.Tensor
    cnt: 12, ((T([2, 3], f16, [1, 2]), 1), {})
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from traces.errors import TraceError, UserError, read_problem
from traces.exchange.grammar import MAX_TEXT, Hostile, read_arguments, write_arguments
from traces.exchange.layout import Unreadable
from traces.exchange.source import Call
from traces.format import write_durably
from traces.materialise import STORAGE_ALIGNMENT
from traces.overloads import resolve
from traces.records import CallRecord
from traces.store import Trace

_OPERATOR = re.compile(r"(?:Operator:\s*)?(?:(\w+)\.)?(\w+)\.(\w+)")
_COUNT = re.compile(r"cnt:\s*(\d{1,18}),\s*(.*)", re.DOTALL)
_INCLUDED = frozenset({"compute"})  # kinds of calls that exercise a kernel


@dataclass(frozen=True)
class BenchRow:
    """One distinct call.

    Attributes:
        operator: BackendBench's name, such as `aten.add.Tensor`.
        arguments: Arguments in the text format.
        count: Number of calls.
        kind: See `traces.overloads.kind`.
    """

    operator: str
    arguments: str
    count: int
    kind: str


@dataclass(frozen=True)
class Export:
    """Calls in BackendBench's form, and the losses of the conversion.

    Attributes:
        rows: Distinct calls by operator, in recording order.
        left_out: Calls that cannot be expressed, by reason.
        lost: Calls by the information that they lose.
    """

    rows: list[BenchRow]
    left_out: Counter[str]
    lost: Counter[str]


def export(trace: Trace, records: Iterable[CallRecord]) -> Export:
    """Convert the records' signatures. The first record of each signature stands for all its calls."""
    counts, kinds = dict[tuple[str, str], int](), dict[str, str]()
    left_out, lost = Counter[str](), Counter[str]()
    exported = set[str]()
    for record in records:
        calls = trace.signatures[record.signature].calls
        if record.signature in exported:
            continue
        exported.add(record.signature)
        try:
            key = (_dotted(record.overload), write_arguments(resolve(record.overload), record.header))
        except (Unreadable, UserError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            left_out[reason] += calls
            continue
        counts[key] = counts.get(key, 0) + calls
        kinds[key[0]] = record.kind
        lost.update({loss: calls for loss in _losses(record)})
    order = list(kinds)
    rows = [BenchRow(*key, count, kinds[key[0]]) for key, count in counts.items()]
    return Export(sorted(rows, key=lambda row: order.index(row.operator)), left_out, lost)


def _dotted(overload: str) -> str:
    namespace, _, name = overload.partition("::")
    return f"{namespace}.{name}" if "." in name else f"{namespace}.{name}.default"


def _losses(record: CallRecord) -> Iterator[str]:
    """Yield each kind of information that the call loses in the text format."""
    groups, tensors = record.header["groups"], record.header["tensors"]
    if any(record.header["contents"]):
        yield "values"
    if len({t["group"] for t in tensors}) < len(tensors):
        yield "aliasing"
    if any(t["offset"] for t in tensors) or any(g["align"] % STORAGE_ALIGNMENT for g in groups):
        yield "offsets and alignment"
    if any(g["device"] != "cpu" for g in groups):
        yield "devices"
    if any(t.get("conj") or t.get("neg") for t in tensors):
        yield "lazy conjugation or negation"
    if record.rng is not None:
        yield "generators"


def write_text(rows: list[BenchRow], path: Path) -> None:
    """Write BackendBench's text file."""
    lines, operator = [], ""
    for row in rows:
        if row.operator != operator:
            operator = row.operator
            lines.append(f"Operator: {operator}\n")
        lines.append(f"cnt: {row.count}, {row.arguments}\n")
    write_durably(path, [line.encode() for line in lines])


def write_parquet(rows: list[BenchRow], path: Path) -> None:
    """Write BackendBench's parquet table; times stay empty, because none were measured.

    Raise UserError if pyarrow is not installed.
    """
    included = [row.kind in _INCLUDED for row in rows]
    columns: dict[str, list[Any]] = {
        "uuid": [hashlib.sha256((row.arguments + row.operator).encode()).hexdigest() for row in rows],
        "op_name": [row.operator for row in rows],
        "args": [row.arguments for row in rows],
        "count": [row.count for row in rows],
        "is_synthetic": [False] * len(rows),
        "included_in_benchmark": included,
        "why_excluded": [[] if used else [_excluded(row.kind)] for row, used in zip(rows, included, strict=True)],
        "runtime_ms": [None] * len(rows),
        "relative_runtime_to_kernel_launch": [None] * len(rows),
        "runnable": [True] * len(rows),
        "is_overhead_dominated_op": [None] * len(rows),
    }
    arrow = needs_pyarrow("pyarrow")
    types = {
        "count": arrow.int64(),
        "why_excluded": arrow.list_(arrow.string()),
        "runtime_ms": arrow.float64(),
        "relative_runtime_to_kernel_launch": arrow.float64(),
        "is_overhead_dominated_op": arrow.bool_(),
    }
    arrays = {name: arrow.array(values, types.get(name)) for name, values in columns.items()}
    sink = arrow.BufferOutputStream()
    needs_pyarrow("pyarrow.parquet").write_table(arrow.table(arrays), sink)
    write_durably(path, [sink.getvalue().to_pybytes()])


def _excluded(kind: str) -> str:
    return {"random": "draws random numbers"}.get(kind, f"{kind}: computes nothing")


def needs_pyarrow(module: str) -> Any:
    """Import a module of pyarrow. Raise UserError if pyarrow is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UserError("parquet needs pyarrow; install it with: pip install 'enablekit[parquet]'") from error


def read_text(path: Path, lost: Counter[str]) -> Iterator[Call]:
    """Yield the calls of a text file.

    Raise Hostile, naming file and line, if one tries to run code.
    """
    overload = None
    for number, line in enumerate(_lines(path), start=1):
        where, text = f"{path}:{number}", line.strip()
        if text.startswith("Operator:"):
            overload = _overload(text, where)
        elif text:
            counted = _COUNT.fullmatch(text)
            if counted is None or overload is None:
                subject = "a line" if overload else "a line before any operator"
                yield Call(
                    "", 1, number, problem=f"{subject} not in the form cnt: N, ((arguments), {{named arguments}})"
                )
            else:
                yield _call(overload, int(counted[1]), counted[2], number, where)


def _lines(path: Path) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8") as file:
            while line := file.readline(MAX_TEXT + 64):
                yield line
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: cannot be read ({read_problem(error)})") from error


def _overload(text: str, where: str) -> str:
    match = _OPERATOR.fullmatch(text)
    if match is None:
        raise Hostile(f"{where}: {text[:80]!r} does not name an operator like aten.add.Tensor; nothing was imported")
    namespace, base, overload = match[1] or "aten", match[2], match[3]
    return f"{namespace}::{base}" if overload == "default" else f"{namespace}::{base}.{overload}"


def _call(overload: str, count: int, text: str, seq: int, where: str) -> Call:
    try:
        args, kwargs = read_arguments(text)
    except Unreadable as error:
        return Call(overload, count, seq, problem=str(error))
    except Hostile as error:
        raise Hostile(f"{where}: {error}; nothing was imported") from error
    return Call(overload, count, seq, args, kwargs)


def read_parquet(path: Path, lost: Counter[str]) -> Iterator[Call]:
    """Yield the calls of a parquet file, from its columns op_name, args and count."""
    reader = needs_pyarrow("pyarrow.parquet")
    try:
        rows = reader.read_table(path, columns=["op_name", "args", "count"]).to_pylist()
    except (OSError, ValueError, KeyError) as error:  # the errors that pyarrow raises, including ArrowInvalid
        reason = str(error).partition("\n")[0][:120]
        raise TraceError(f"{path}: cannot be read as parquet with op_name, args and count ({reason})") from error
    for number, row in enumerate(rows, start=1):
        where, (operator, text, count) = f"{path}:{number}", row.values()
        if not isinstance(operator, str) or not isinstance(text, str) or not isinstance(count, int) or count < 0:
            yield Call("", 1, number, problem="a row whose op_name, args or count is of another type")
        else:
            yield _call(_overload(operator, where), count, text, number, where)
