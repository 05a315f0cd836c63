"""Reading what the files beside this one say of each kernel of the library.

A data file has CASES, by overload calls that the kernel has to answer as ATen does; OPINFO, how many of OpInfo samples
of each of its overloads are judged too; DERIVED, further overloads that it serves, of each of which two are; FAULTS, by
name a text of the linked kernel file and what stands in its place in a kernel that has to be refused; and REFUSED, by
overload calls with sizes that do not fit, which nothing before a kernel refuses and its wrapper has to: one that took a
size from one argument and used it for another would read memory that is not its own.
A call is a tuple of arguments in the schema's order; those by name are a dict at its end. A tensor is a text:

    f32[3,4]          random, normal; of integers from -5 to 5
    bf16[3,4]{1,3}    with these strides; {0} repeats one element
    f32[6]u           between 0 and 1
    f8_e4m3fn[3,4]    of 8 bits; f8_e5m2, f8_e4m3fnuz, f8_e5m2fnuz
    i64[2,5]<7        from 0 below 7
    f32(1, nan, -0.)  these elements; of complex dtypes, such as 1-infj
    f32(1, 2)[1,2]    these elements in this shape
    f32[]=4           filled with a number, with inf or with nan
    f64[3]@2          two elements further on in its memory
    c64[3]*           a conjugated view: its memory holds the conjugates, and its conjugate bit is set
    f32[3]~           a negated view: its memory holds the negatives, and its negative bit is set

Dtypes and memory formats are written `torch.float32`; a sparse tensor is a dict of `indices`, `values` and `size`.
FORWARD names, by overload, another that leaves what it takes: (the other, {argument: index of the result}, what else
the other is given). These arguments are not given: they are of ATen's answer to the other with the same arguments. A
call may give all of them by name instead.
"""

from __future__ import annotations

import itertools
import math
import re
import runpy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch

from traces.overloads import bind, resolve
from verify.cases import references
from verify.cases.case import Case, case_of_values
from verify.cases.samples import opinfo_cases
from verify.contract.kernel_file import KernelFile

ROOT = Path(__file__).parent
MOST_CASES = 12  # of a file; more tell little and take long
TENSOR = re.compile(
    r"(?P<dtype>bool|bf16|f8_\w+|[cfiu]\d+)(?:\[(?P<shape>[\d,]*)\]|\((?P<elements>[^)]*)\)(?:\[(?P<laid>[\d,]*)\])?)"
    r"(?:\{(?P<strides>[\d,]*)\})?(?P<kind>u|<\d+|=(?:[-.\d]+|inf|nan))?(?:@(?P<offset>\d+))?(?P<bits>[*~]*)"
)
DTYPES = {"bool": torch.bool, "bf16": torch.bfloat16, "u8": torch.uint8}
DTYPES |= {f"f{n}": getattr(torch, f"float{n}") for n in (16, 32, 64)}
DTYPES |= {f"f8_{kind}": getattr(torch, f"float8_{kind}") for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")}
DTYPES |= {f"c{n}": getattr(torch, f"complex{n}") for n in (32, 64, 128)}
DTYPES |= {f"i{n}": getattr(torch, f"int{n}") for n in (8, 16, 32, 64)}
DTYPES |= {f"u{n}": getattr(torch, f"uint{n}") for n in (16, 32, 64)}


Left: TypeAlias = tuple[str, dict[str, int], dict[str, Any]]


@dataclass(frozen=True)
class Data:
    """What a data file says."""

    cases: tuple[Case, ...]
    faults: dict[str, tuple[str, str]]
    refused: tuple[tuple[str, dict[str, Any]], ...]


def read(path: Path, kernel: KernelFile) -> Data:
    """The data of a kernel. Raises ValueError for what is no data."""
    found = {name: value for name, value in runpy.run_path(str(path)).items() if name.isupper()}
    unknown = found.keys() - {"CASES", "OPINFO", "DERIVED", "FAULTS", "REFUSED", "FORWARD"}
    if unknown:
        raise ValueError(f"{path}: {', '.join(sorted(unknown))} is no part of a data file")
    forward, calls, opinfo = found.get("FORWARD", {}), found.get("CASES", {}), found.get("OPINFO", 0)
    if sum(map(len, calls.values())) > MOST_CASES:
        raise ValueError(f"{path}: more than {MOST_CASES} cases")
    cases = [case_of(o, call, forward.get(o)) for o, several in calls.items() for call in several]
    cases += samples(kernel.overloads, kernel.dtypes, opinfo) if opinfo else []
    cases += samples(found["DERIVED"], kernel.dtypes, 2) if "DERIVED" in found else []
    refused = [(o, arguments_of(o, call)) for o, several in found.get("REFUSED", {}).items() for call in several]
    return Data(tuple(cases), found.get("FAULTS", {}), tuple(refused))


def samples(overloads: Sequence[str], dtypes: Sequence[str], most: int) -> list[Case]:
    """OpInfo's samples, of each overload and dtype some, spread evenly, and `most` of each overload."""
    chosen: list[Case] = []
    given = opinfo_cases(list(overloads), dtypes)
    for overload in overloads:
        cases = [case for case in given if case.overload == overload]
        chosen += cases[:: -(-len(cases) // most)] if cases else ()
    return chosen


def case_of(overload: str, call: tuple[Any, ...], left: Left | None = None) -> Case:
    """A call as a case. left: where some of its arguments come from."""
    return case_of_values(overload, **arguments_of(overload, call, left))


def arguments_of(overload: str, call: tuple[Any, ...], left: Left | None = None) -> dict[str, Any]:
    """All arguments of a call by their names."""
    names = [a.name for a in resolve(overload)._schema.arguments if left is None or a.name not in left[1]]
    named = call[-1] if call and isinstance(call[-1], dict) and "indices" not in call[-1] else {}
    positional = call[:-1] if named else call
    seeds = itertools.count(1)
    given = {**dict(zip(names, positional, strict=False)), **named}
    made = {name: value_of(value, seeds) for name, value in given.items()}
    if left is not None and not left[1].keys() <= made.keys():
        other, results, more = left
        op = resolve(other)
        shared = {a.name: made[a.name] for a in op._schema.arguments if a.name in made}
        arguments = bind(op, (), {**shared, **{name: value_of(value, seeds) for name, value in more.items()}})
        answer = references.answer(other, arguments, (1, 2)) if references.has(other) else op(**arguments)
        made |= {name: answer[index] for name, index in results.items()}
    return bind(resolve(overload), (), made)


def value_of(value: Any, seeds: Iterator[int]) -> Any:
    if isinstance(value, dict):
        parts = [value_of(value[name], seeds) for name in ("indices", "values")]
        with torch.sparse.check_sparse_tensor_invariants(False):
            return torch.sparse_coo_tensor(*parts, value["size"])._coalesced_(False)
    if isinstance(value, list):
        return [value_of(v, seeds) for v in value]
    if isinstance(value, str) and value.startswith("torch."):
        return getattr(torch, value.removeprefix("torch."))
    match = TENSOR.fullmatch(value) if isinstance(value, str) else None
    return value if match is None else tensor_of(match, next(seeds))


def tensor_of(match: re.Match[str], seed: int) -> torch.Tensor:
    dtype = DTYPES[match["dtype"]]
    if match["elements"] is not None:
        number, wide = (complex, torch.complex128) if dtype.is_complex else (float, torch.float64)
        elements = [number(e.strip()) for e in match["elements"].split(",") if e.strip()]
        laid = [int(n) for n in match["laid"].split(",") if n] if match["laid"] is not None else [len(elements)]
        return viewed(torch.tensor(elements, dtype=wide).to(dtype).view(laid), match["bits"])
    shape = [int(n) for n in match["shape"].split(",") if n]
    strides = [int(n) for n in match["strides"].split(",") if n] if match["strides"] is not None else None
    offset = int(match["offset"] or 0)
    extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1 if strides else math.prod(shape)
    memory = elements_of(extent + offset, dtype, match["kind"] or "", torch.Generator().manual_seed(seed))
    strides = strides or list(torch.empty(shape, device="meta").stride())
    return viewed(torch.as_strided(memory, shape, strides, offset), match["bits"])


def viewed(memory: torch.Tensor, bits: str) -> torch.Tensor:
    """Return a view of this memory that has the conjugate bit for `*` and the negative bit for `~`."""
    memory = memory.conj() if "*" in bits else memory
    return torch._neg_view(memory) if "~" in bits else memory


def elements_of(count: int, dtype: torch.dtype, kind: str, generator: torch.Generator) -> torch.Tensor:
    if kind.startswith("="):
        return torch.full((count,), float(kind[1:])).to(dtype)
    if kind.startswith("<"):
        return torch.randint(int(kind[1:]), (count,), generator=generator).to(dtype)
    if dtype.is_floating_point:
        draw = torch.rand if kind == "u" else torch.randn
        return draw(count, generator=generator, dtype=torch.float64).to(dtype)
    if dtype.is_complex:
        return torch.randn(count, generator=generator, dtype=torch.complex128).to(dtype)
    low = 0 if dtype in (torch.bool, torch.uint8) else -5
    return torch.randint(low, 2 if dtype == torch.bool else 6, (count,), generator=generator).to(dtype)


@pytest.fixture(scope="session")
def data_of():
    """A function of a data file and its kernel that returns what it says."""
    return read
