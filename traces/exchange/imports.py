"""Import of calls that other tools wrote, as a trace.

The files contain no tensor values, so tensors get valid ones drawn from a seed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch._ops import OpOverload

from traces.contents import MAX_SYNTHESISED
from traces.errors import TraceError, UserError, choose_from
from traces.exchange import backendbench, chakra
from traces.exchange.grammar import to_dtype
from traces.exchange.layout import TensorPlace, Unreadable, lay_out, tensors_of, to_device
from traces.exchange.roles import Listed, contents
from traces.exchange.source import Call
from traces.format import to_json
from traces.overloads import base_name, bind, kind, resolve
from traces.text import describe
from traces.values import Json
from traces.writer import CallSite, TraceWriter

FORMATS = {
    "backendbench-txt": backendbench.read_text,
    "backendbench-parquet": backendbench.read_parquet,
    "chakra": chakra.read,
}


@dataclass(frozen=True)
class Imported:
    """Result of an import.

    Attributes:
        calls: Number of calls, counted with multiplicity.
        stored: Number of distinct calls, stored with arguments.
        left_out: Calls that could not be imported, by reason.
        lost: Calls by the information that they lose.
    """

    calls: int
    stored: int
    left_out: Counter[str]
    lost: Counter[str]


def import_trace(
    source: str | os.PathLike[str], form: str, out: str | os.PathLike[str], force: bool = False
) -> Imported:
    """Write a trace of the calls in a file; each distinct call becomes one stored call at level "seeded".

    Calls that cannot be imported are counted by reason. On an error nothing is written.

    Args:
        source: The file to import.
        form: A key of FORMATS.
        out: Directory of the new trace.
        force: Replace an existing trace.

    Returns:
        Imported: Counts of imported and rejected calls.

    Raises:
        UserError: If the format is unknown or the directory exists.
        TraceError: If the file is in another format or tries to run code.
    """
    if form not in FORMATS:
        raise UserError(f"unknown format {form!r}{choose_from(form, FORMATS)}")
    path = Path(source)
    left_out, lost = Counter[str](), Counter[str]()
    taken = list(_taken(FORMATS[form](path, lost), left_out))
    if not taken:
        raise TraceError(f"{path}: no call of the form {form} in it ({_reasons(left_out)})")
    writer = TraceWriter(out, {"model": path.name, "imported": form, "values": "seeded"}, force)
    with ExitStack() as failed:
        failed.callback(writer.abandon)
        stored = set[tuple[str, str]]()
        for call, op, arguments in taken:
            _store(writer, call, op, arguments, lost, stored)
        writer.close(skipped=dict(left_out), lost=dict(lost), errors={})
        failed.pop_all()
    return Imported(sum(call.count for call, _, _ in taken), len(stored), left_out, lost)


def _reasons(left_out: Counter[str]) -> str:
    return "; ".join(f"{n} {reason}" for reason, n in left_out.most_common(3)) or "it holds none at all"


def _taken(calls: Iterable[Call], left_out: Counter[str]) -> Iterator[tuple[Call, OpOverload, dict[str, Any]]]:
    for call in calls:
        try:
            yield call, *_bound(call)
        except Unreadable as error:
            left_out[str(error)] += call.count


def _bound(call: Call) -> tuple[OpOverload, dict[str, Any]]:
    """Return the overload and its arguments in the schema's types. Raise Unreadable."""
    if call.problem is not None:
        raise Unreadable(call.problem)
    try:
        op = resolve(call.overload)
    except UserError as error:
        raise Unreadable(f"unknown operator {call.overload}") from error
    names = [a.name for a in op._schema.arguments]
    if len(call.args) > len(names) or not set(call.kwargs) <= set(names):
        raise Unreadable(f"arguments that do not fit the schema of {call.overload}")
    try:
        arguments = bind(op, call.args, call.kwargs)
    except KeyError as error:
        raise Unreadable(f"arguments that do not fit the schema of {call.overload}") from error
    types = {a.name: str(a.real_type) for a in op._schema.arguments}
    return op, {name: _typed(value, types[name], call) for name, value in arguments.items()}


def _typed(value: Any, type_: str, call: Call) -> Any:
    if isinstance(value, str) and "Device" in type_:
        return to_device(value)
    if type_ in ("Tensor", "Optional[Tensor]") and isinstance(value, str | list | tuple | dict):
        raise Unreadable(f"arguments that do not fit the schema of {call.overload}")
    if "ScalarType" in type_ and isinstance(value, str):
        return to_dtype(value)
    return call.coerce(value, type_)


def _store(
    writer: TraceWriter,
    call: Call,
    op: OpOverload,
    arguments: dict[str, Any],
    lost: Counter[str],
    stored: set[tuple[str, str]],
) -> None:
    """Count a call, and store it unless one with the same arguments is stored already."""
    packed, members = lay_out(op, arguments)
    if sum(g.nbytes for g in packed.groups) > MAX_SYNTHESISED:
        why = f"over {MAX_SYNTHESISED >> 30} GiB in one call"
        packed.groups = [replace(group, known=True) for group in packed.groups]
        specs: list[Json] = [{"level": "meta", "why": why} for _ in packed.groups]
    else:
        specs = [
            _content(writer, op, arguments, uses, seed) if packed.groups[seed].known else None
            for seed, uses in enumerate(members)
        ]
    lost["values"] += call.count * any(specs)
    lost["aliasing between dtypes"] += call.count * _mixes_dtypes(arguments)
    for why in {spec["why"] for spec in specs if spec and "why" in spec}:
        lost[f"what values are valid: {why}"] += call.count
    header = {**packed.header(), "contents": specs}
    signature = writer.signature(call.overload, kind(op, arguments), describe(header))
    key = (signature.key, to_json(header))
    if signature.calls and key not in stored:
        lost["how often each of calls that differ in a float's value occurred"] += call.count
    signature.count(call.phase, 0, call.count)
    if key not in stored:
        stored.add(key)
        writer.add_call(signature, CallSite(call.seq, 0, call.phase, ""), header, {})


def _mixes_dtypes(arguments: dict[str, Any]) -> bool:
    pairs = {(u.tensor.storage, u.tensor.dtype) for u in tensors_of(arguments) if u.tensor.storage}
    return len(pairs) > len({storage for storage, _ in pairs})


def _content(
    writer: TraceWriter, op: OpOverload, arguments: dict[str, Any], uses: list[TensorPlace], seed: int
) -> Json:
    """Return the content spec for one group.

    It says how to draw the contents or lists integers; its level is "meta" if no valid contents are known.
    """
    use = uses[0]
    count = max(u.tensor.last for u in uses) - min(u.tensor.offset for u in uses)
    if not count:
        return ""
    try:
        values = contents(base_name(op), arguments, use, count)
    except Unreadable as error:
        return {"level": "meta", "why": str(error)}
    if not isinstance(values, Listed):
        return {"level": "seeded", "stats": values, "seed": seed}
    width = use.tensor.dtype.itemsize
    key = writer.add_blob(values.values.astype(f"<u{width}").tobytes())
    return {"level": "seeded", "ids": key, "width": width, "low": 0, "count": count}
