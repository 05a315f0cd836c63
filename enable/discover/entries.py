"""Catalogue entries: self-contained Triton programs, and the text that they are made from.

The catalogue modules build entries with `flat` and `entry`; worker.py runs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from textwrap import indent
from typing import Any

WARPS = 4  # Triton's default
SIZE = 64  # elements in a flat entry: two per thread of a 32-thread warp

# PyTorch name -> Triton name
FLOATS = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float32", "float64": "float64"}
FLOATS8 = {
    "float8_e4m3fn": "float8e4nv",
    "float8_e5m2": "float8e5",
    "float8_e4m3fnuz": "float8e4b8",
    "float8_e5m2fnuz": "float8e5b16",
}
SIGNED = {name: name for name in ("int8", "int16", "int32", "int64")}
UNSIGNED = {name: name for name in ("uint8", "uint16", "uint32", "uint64")}
DTYPES = {"bool": "int1", **SIGNED, **UNSIGNED, **FLOATS, **FLOATS8}

_PROGRAM = '''\
"""{name}"""

import torch
import triton
import triton.language as tl

{helpers}
@triton.jit
def kernel({parameters}):
{body}

GRID = {grid}
META = {meta}


def inputs(device):
    N = META["N"]
    k = torch.arange(N * {scale})
{tensors}
    return [x.to(device) if isinstance(x, torch.Tensor) else x for x in values]
'''
_META = re.compile(r"^META = .*$", re.MULTILINE)


@dataclass(frozen=True)
class CatalogueEntry:
    """One program in the catalogue.

    Attributes:
        name: Unique name, such as `tl.exp[dtype=float32]`.
        group: Section in tables, such as `functions`.
        subject: Feature that the entry tests: a name in the dialect such as `tl.exp`, or a word such as `copy`.
        form: Variant of the feature, by axis, such as {"dtype": "float32"}.
        text: Program. It defines `kernel`, `GRID`, `META` and `inputs(device)`.
        meta: The program's META: constexpr parameters and launch options.
        needs: Names of simpler entries. If one of them fails, it explains the failure of this entry.
        shrinks: True if `N` in META may be any smaller power of two.
    """

    name: str
    group: str
    subject: str
    form: Mapping[str, Any]
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    shrinks: bool = False

    def with_meta(self, **changes: Any) -> CatalogueEntry:
        """Return the entry with other values in META."""
        meta = {**self.meta, **changes}
        return replace(self, meta=meta, text=_META.sub(f"META = {meta!r}", self.text))


def entry_name(subject: str, form: Mapping[str, Any]) -> str:
    """Return an entry's name."""
    axes = ",".join(f"{axis}={value}" for axis, value in form.items())
    return f"{subject}[{axes}]" if axes else subject


def entry(
    group: str,
    subject: str,
    body: str,
    tensors: Mapping[str, str],
    *,
    form: Mapping[str, Any] | None = None,
    **details: Any,
) -> CatalogueEntry:
    """Return an entry.

    Args:
        group: As in CatalogueEntry.
        subject: As in CatalogueEntry.
        body: The kernel's body.
        tensors: Python expression of each runtime parameter; `k` is `torch.arange(N * scale)`.
        form: As in CatalogueEntry.
        details: Any of `meta`, `grid`, `helpers`, `scale`, `needs` and `shrinks`.
    """
    form = form or {}
    meta = {"N": SIZE, "num_warps": WARPS, **details.get("meta", {})}
    constants = [name for name in meta if name.isupper()]
    name = entry_name(subject, form)
    text = _PROGRAM.format(
        name=name,
        helpers=details.get("helpers", ""),
        parameters=", ".join([*tensors, *(f"{constant}: tl.constexpr" for constant in constants)]),
        body=indent(body, "    "),
        grid=details.get("grid", (1,)),
        meta=repr(meta),
        scale=details.get("scale", 1),
        tensors=indent("\n".join(["values = [", *(f"    {value}," for value in tensors.values()), "]"]), "    "),
    )
    needs = tuple(needed for needed in details.get("needs", ()) if needed != name)
    return CatalogueEntry(name, group, subject, form, text, meta, needs, details.get("shrinks", False))


def flat(
    group: str,
    subject: str,
    expression: str,
    dtype: str = "float32",
    *,
    result: str = "",
    form: Mapping[str, Any] | None = None,
    **details: Any,
) -> CatalogueEntry:
    """Return an entry that computes `expression` from blocks x, y and i, and stores it.

    Args:
        group: As in CatalogueEntry.
        subject: As in CatalogueEntry.
        expression: Statements, the last of which is an expression or an assignment to z.
        dtype: PyTorch dtype name of x and y.
        result: PyTorch dtype name of the result; `dtype` by default.
        form: As in CatalogueEntry; {"dtype": dtype} by default.
        details: As for `entry`; also `x` and `y`, Python expressions of the inputs.
    """
    *statements, last = expression.split("\n")
    last = last if re.match(r"(\w+, )*z = ", last) else f"z = {last}"
    inputs = {"x_ptr": details.pop("x", numbers(dtype))}
    loads = ["i = tl.arange(0, N)", "x = tl.load(x_ptr + i)"]
    if re.search(r"\by\b", expression):
        inputs["y_ptr"] = details.pop("y", numbers(dtype, 23, 5))
        loads.append("y = tl.load(y_ptr + i)")
    inputs["out_ptr"] = f"torch.zeros(N, dtype=torch.{result or dtype})"
    body = "\n".join([*loads, *statements, last, "tl.store(out_ptr + i, z)"])
    form = {"dtype": dtype} if form is None else form
    needs = {copy_of(dtype), copy_of(result or dtype), *details.pop("needs", ())}
    details.setdefault("shrinks", True)
    return entry(group, subject, body, inputs, form=form, needs=sorted(needs), **details)


def copy_of(dtype: str) -> str:
    """Return the name of the entry that copies this dtype."""
    return entry_name("copy", {"dtype": dtype})


def numbers(dtype: str, step: int = 37, scale: float = 7.5) -> str:
    """Return a Python expression for values that differ from one element to the next.

    Args:
        dtype: PyTorch dtype name.
        step: Distance between values before they wrap at 64.
        scale: Divisor for floating-point values, which are within 32 / scale.
    """
    if dtype == "bool":
        return f"(k * {step} % 3 == 0)"
    if dtype.startswith("uint"):
        return f"(k * {step} % 64 + 1).to(torch.{dtype})"
    if dtype.startswith("int"):
        return f"(k * {step} % 64 - 31).to(torch.{dtype})"
    return f"((k * {step} % 64 - 31.5) / {scale}).to(torch.{dtype})"
