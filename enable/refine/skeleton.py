"""Write a kernel file's skeleton: contract, recorded shapes, and a kernel that compiles and runs but is wrong.

Used by `enable new`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jinja2
import torch

from enable.cover.needs import is_known
from traces import UserError
from traces.overloads import base_name, resolve
from traces.program import program_name
from traces.store import Trace
from verify.contract.derive import functional_base

DTYPES = ("bfloat16", "float16", "float32")  # default if no trace is given
_KNOWN = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
_SHOWN = 12  # maximum number of signatures in the docstring


def skeleton(overload: str, trace: Trace | None) -> str:
    """Return a kernel file's text for an overload.

    Args:
        overload: The overload's full name.
        trace: Trace whose calls to the overload are listed, with their shapes and modules; None for no list.

    Raises:
        UserError: If the overload is unknown, derives from another overload's kernel, takes no tensor, or is
            not called in the trace.
    """
    if not is_known(overload):
        raise UserError(f"{overload}: not an operator of ATen; name one, such as aten::silu")
    base = functional_base(overload)
    if base != overload:
        raise UserError(f"{overload} is served by a kernel for {base}; write that: {program_name()} new {base}")
    op = resolve(overload)
    tensors = [a.name for a in op._schema.arguments if str(a.type) == "Tensor"]
    if not tensors:
        raise UserError(
            f"{overload} takes no tensor that is always there; "
            f"begin from a kernel like it: {program_name()} library list"
        )
    if torch.Tag.pointwise not in op.tags:
        tensors = tensors[:1]  # the author decides how the kernel uses the other tensors
    lines, dtypes = _recorded(overload, trace) if trace is not None else ([], DTYPES)
    return (
        _environment()
        .get_template("kernel.py.j2")
        .render(
            schema=str(op._schema),
            overload=overload,
            name=base_name(op),
            trace=trace.path.name.removesuffix(".trace") if trace is not None else "",
            calls=lines,
            dtypes=dtypes,
            tensors=tensors,
            pointers=[f"{name}_ptr" for name in tensors],
            strides=[f"{name}_stride" for name in tensors],
            parameters=list(_parameters(op)),
        )
    )


def _recorded(overload: str, trace: Trace) -> tuple[list[str], tuple[str, ...]]:
    """Return a line for each signature, the most frequent first, and the dtypes that occur."""
    signatures = [s for s in trace.signatures.values() if s.overload == overload]
    if not signatures:
        raise UserError(f"{trace.path}: calls no {overload}; see: {program_name()} trace show {trace.path}")
    modules: dict[str, str] = {}
    dtypes: set[str] = set()
    for record in trace.calls():
        if record.overload == overload:
            modules.setdefault(record.signature, record.module)
            dtypes |= {str(t["dtype"]) for t in record.header["tensors"]}
    ranked = sorted(signatures, key=lambda s: -s.calls)
    lines = [
        f"{s.calls:4} x  {s.arguments}" + (f"  in {modules[s.key]}" if modules.get(s.key) else "")
        for s in ranked[:_SHOWN]
    ]
    more = [f"and {len(ranked) - _SHOWN} signatures more"] if len(ranked) > _SHOWN else []
    return [*lines, *more], tuple(d for d in _KNOWN if d in dtypes)


def _parameters(op: Any) -> list[str]:
    """Return the wrapper's parameters as source text."""
    parameters: list[str] = []
    keywords = False
    for a in op._schema.arguments:
        if a.kwarg_only and not keywords:
            parameters, keywords = [*parameters, "*"], True
        default = f"={_literal(a.default_value)}" if a.has_default_value() else ""
        parameters.append(f"{a.name}{default}")
    return parameters


def _literal(value: Any) -> str:
    """Return a default value as source text; infinities and NaN become `float("...")`."""
    return f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)


def write(path: Path, text: str, force: bool) -> None:
    """Write a kernel file.

    Raises:
        UserError: If the file exists and `force` is not set, or if it cannot be written.
    """
    if path.exists() and not force:
        raise UserError(f"{path} exists; name another file with --out FILE, or replace it with --force")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); name another file with --out FILE") from error


def _environment() -> jinja2.Environment:
    return jinja2.Environment(  # noqa: S701 - source text, not HTML
        loader=jinja2.FileSystemLoader(Path(__file__).parents[1] / "templates"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
