"""Calls of elementwise operators in which a tensor holds every value of its dtype.

Of dtypes with at most 16 bits, one case holds all values. The 2^32 values of float32 take 256 cases, so they are only
made on request, and for a single tensor. Otherwise a wider dtype takes 2^16 values: each combination of the leading
16 bits (of a float, the sign, the exponent and some of the mantissa), and random bits after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import torch
from blake3 import blake3

from traces.overloads import resolve
from traces.subgraphs import is_subgraph
from traces.values import Packed, pack, unpack
from verify.cases.arguments import Arguments
from verify.cases.case import Case, by_overload, case_of_values
from verify.cases.elements import frozen
from verify.cases.oracle import stands
from verify.cases.packed import holds_sparse
from verify.cases.preconditions import broken, keeping
from verify.cases.variants import like
from verify.operators import elementwise

LEADING = 16  # bits; every combination of them occurs
CHUNK = 1 << 24  # values in a case, if all values of a dtype take several
CHUNKS = (1 << 32) // CHUNK
_EVERY, _LEADING, _RANGE = "every value", f"all leading {LEADING} bits", f"{CHUNK} values"  # begin a signature
MOST_CALLS = 4  # calls for each argument and dtype, which differ in their numbers, flags and words
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by element size


def every_value(cases: Sequence[Case], seed: int, whole: bool = False) -> list[Case]:
    """Return the cases for each elementwise overload, each tensor argument and each of its dtypes.

    Args:
        cases: Existing cases; generated ones are ignored.
        seed: Seed for the other arguments and for random trailing bits.
        whole: Make all values of float32 where a call has no other tensor.
    """
    made: dict[str, Case] = {}
    for overload, group in by_overload(case for case in cases if not case.made).items():
        if elementwise(overload):
            for arguments, name in _calls(overload, group):
                made |= {case.id: case for case in _cases(overload, arguments, name, seed, whole)}
    return list(made.values())


def described(cases: Iterable[Case]) -> str:
    """Return which values the cases made here have, such as "every value in float16, bfloat16"."""
    counts: dict[str, Counter[str]] = {}
    for case in cases:
        which, _, where = case.signature.partition(" in ")
        if which in (_EVERY, _LEADING, _RANGE):
            counts.setdefault(which, Counter())[where.split()[0]] += 1
    ranges = counts.pop(_RANGE, Counter())
    for dtype, count in ranges.items():
        part = _EVERY if count % CHUNKS == 0 else f"{count % CHUNKS} of {CHUNKS} ranges of values"
        counts.setdefault(part, Counter())[dtype] += 1
    return ", ".join(f"{which} in {', '.join(sorted(dtypes))}" for which, dtypes in counts.items())


def _calls(overload: str, cases: Sequence[Case]) -> Iterator[tuple[Arguments, str]]:
    """Yield calls with the name of the argument to change."""
    outs = set() if is_subgraph(overload) else {a.name for a in resolve(overload)._schema.arguments if a.is_out}
    known: dict[tuple[str, str], set[str]] = {}
    for case in cases:
        packed = case.load()
        if holds_sparse(packed.tree):
            continue
        arguments = unpack(packed)
        numbers = str(sorted((n, str(v)) for n, v in arguments.items() if not isinstance(v, torch.Tensor)))
        for name, t in arguments.items():
            if name in outs or not isinstance(t, torch.Tensor) or not t.numel() or not t.dim() or t.is_complex():
                continue
            calls = known.setdefault((name, str(case.dtypes)), set())
            if len(calls) < MOST_CALLS and numbers not in calls:
                calls.add(numbers)
                yield arguments, name


def _cases(overload: str, arguments: Arguments, name: str, seed: int, whole: bool) -> Iterator[Case]:
    dtype, generator = arguments[name].dtype, torch.Generator().manual_seed(seed)
    tensors = [v for v in arguments.values() if isinstance(v, torch.Tensor)]
    if whole and dtype is torch.float32 and len(tensors) == 1:
        yield from (_chunk(overload, arguments, name, number) for number in range(CHUNKS))
        return
    values = _values(dtype, generator)
    resized = {
        n: like(v, list(values.shape), generator) if isinstance(v, torch.Tensor) and v.dim() else v
        for n, v in arguments.items()
    }
    call = keeping(overload, {**resized, name: values})
    if broken(overload, call) is None and stands(overload, call):
        which = _EVERY if values.itemsize * 8 <= LEADING else _LEADING
        how = f"{which} in {str(dtype).removeprefix('torch.')} {name}"
        yield replace(case_of_values(overload, **call), signature=how)


def _values(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Return [n] values: all of them, or one for each combination of leading bits."""
    if dtype is torch.bool:
        return torch.tensor([False, True])
    bits = dtype.itemsize * 8
    leading = torch.arange(1 << min(bits, LEADING))
    after = torch.randint(1 << max(bits - LEADING, 0), leading.shape, generator=generator)
    return (leading << max(bits - LEADING, 0) | after).to(_BITS[dtype.itemsize]).view(dtype)


def _chunk(overload: str, arguments: Arguments, name: str, number: int) -> Case:
    """Return the case for one of the chunks of all float32 values, whose bytes are made whenever it is loaded."""
    first = number * CHUNK

    def load() -> Packed:
        values = torch.arange(first, first + CHUNK).to(torch.int32).view(torch.float32)
        return frozen(pack({**arguments, name: values}))

    call = {n: str(v) for n, v in arguments.items() if n != name}
    key = blake3(f"{overload} {name} {first} {sorted(call.items())}".encode()).hexdigest()[:32]
    how = f"{_RANGE} in float32 {name}, from {first:#010x}"
    return Case(key, overload, how, load, ((CHUNK,),), ("float32",))
