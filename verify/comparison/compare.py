"""Compare what a child returned with what the operator answers: structure first, then values.

Everything is decided from metadata and raw bytes that the parent decodes itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch

from traces.facts import tagged
from traces.overloads import resolve, written
from traces.subgraphs import is_subgraph
from traces.values import Bytes, Packed, TensorRef, numel
from verify.cases.case import Expected, contents, tensor_names
from verify.comparison.accuracy import accuracy_report
from verify.comparison.deviation import differences, is_single, is_wrong, largest, real
from verify.comparison.factors import aligned, compared
from verify.comparison.laws import law_of, unlawful
from verify.comparison.open_results import as_aten_gives

_ABOUT_STRIDES = tagged("about_strides")

# Results that are float32 on GPUs, and on the CPU, which is asked, of the arguments' dtype.
_FLOAT32_ON_GPUS = {"native_layer_norm": ("return[1]", "return[2]")}


SINGLE = "single precision"  # the rule that a result of float64 breaks which was computed in float32


@dataclass(frozen=True)
class Mismatch:
    """What is wrong: one line for a table, and the evidence as text for a prompt. rule: SINGLE, or nothing."""

    detail: str
    report: str
    rule: str = ""


def compare(overload: str, expected: Expected, got: Packed, strict: bool = True) -> Mismatch | None:
    """None if `got` (arguments after the call, and "return") is what `expected` says; else the first mismatch.

    Of an overload that draws, values have to be what its law says (verify/comparison/laws.py).
    strict: results have the strides that ATen gives; else they may also be dense in another order of dimensions, unless
    the operator's meaning fixes them. So may those of a subgraph whose arguments are not all alike in that order: it is
    that of the steps which decides then.
    """
    got = as_aten_gives(overload, expected, got)
    wider = _FLOAT32_ON_GPUS.get(_base(overload), ())
    fixed = fixes_strides(overload, expected) or (strict and not (is_subgraph(overload) and _mixed(expected.before)))
    problem = _structure(expected.native, got, fixed, _may_copy(overload, strict), wider)
    if problem is not None:
        return Mismatch(problem, problem)
    written = _written(expected)
    for i, name in enumerate(tensor_names(expected.native.tree)):
        if i not in written:
            if not _same_bytes(expected.before, got, i):
                text = f"argument {name} was changed; this overload must leave it alone"
                return Mismatch(text, text)
        elif law_of(overload) is None and is_wrong(overload, expected, got, i):
            return _wrong_values(overload, expected, got, i)
    contradiction = unlawful(expected, got)
    if contradiction:
        return Mismatch(contradiction, contradiction)
    if _outside_elements(expected.before, got, _changed_groups(expected)):
        text = "memory between the elements of a written argument was changed"
        return Mismatch(text, text)
    return None


def _wrong_values(overload: str, expected: Expected, got: Packed, index: int) -> Mismatch:
    """The accuracy report of one tensor, and in a line each how the others that the operator decides came out."""
    names = tensor_names(expected.native.tree)
    derived = "" if compared(overload, expected, got, index) is None else " (the factors' product, then the vectors')"
    detail, report = accuracy_report(f"{names[index]}{derived}", *differences(overload, expected, got, index))
    others = []
    for i in sorted(_written(expected) - {index}):
        wrong = differences(overload, expected, got, i)[2]
        count = int(wrong.sum())
        others.append(f"  {names[i]} is {f'wrong too: {count} of {wrong.numel()} elements' if count else 'right'}")
    return Mismatch(
        detail, "\n".join([report, *others]), SINGLE if is_single(overload, expected, got, _written(expected)) else ""
    )


def _base(overload: str) -> str:
    return overload.removeprefix("aten::").partition(".")[0]


def fixes_strides(overload: str, expected: Expected) -> bool:
    """Whether the operator's meaning decides its results' strides: it says so, or they are views or arguments."""
    return _base(overload) in _ABOUT_STRIDES or is_view(expected)


def is_view(expected: Expected) -> bool:
    """Whether a result lies in an argument's memory."""
    given = len(expected.before.groups)
    return any(ref.group < given for ref in expected.native.tensors[len(expected.before.tensors) :])


def _mixed(before: Packed) -> bool:
    """Whether arguments lie in memory in unlike orders of their dimensions, or one has elements that share memory."""
    several = [ref for ref in before.tensors if sum(n > 1 for n in ref.shape) > 1]
    orders = {tuple(sorted((s, i - len(r.stride)) for i, s in enumerate(r.stride) if r.shape[i] > 1)) for r in several}
    ascending = {tuple(dim for _, dim in order) for order in orders}
    return len(ascending) > 1 or any(stride == 0 for order in orders for stride, _ in order)


def _may_copy(overload: str, strict: bool) -> bool:
    """Whether a result may be a copy where ATen hands an argument through, as dropout does out of training."""
    return not strict and all(r.alias_info is None for r in resolve(overload)._schema.returns)


def _structure(native: Packed, got: Packed, strict: bool, may_copy: bool, wider: Collection[str] = ()) -> str | None:
    """Containers, then per tensor dtype, shape, strides, then which tensors share memory. wider: names of those that
    may be float32."""
    if got.tree.keys() != native.tree.keys():
        return "the child returned other arguments than it was given"
    if _unmarked(got.tree["return"]) != _unmarked(native.tree["return"]) or len(got.tensors) != len(native.tensors):
        return f"returned {_outline(got.tree['return'])}, expected {_outline(native.tree['return'])}"
    for argument in native.tree:
        if _sparse(got.tree[argument]) != _sparse(native.tree[argument]):
            outlines = [_outline(p.tree[argument]) for p in (got, native)]
            return f"argument {argument} is {outlines[0]} after the call, expected {outlines[1]}"
    for name, want, have in zip(tensor_names(native.tree), native.tensors, got.tensors, strict=True):
        is_wider = name in wider and have.dtype == "float32" and want.dtype in ("bfloat16", "float16")
        for what in ("shape", "conj", "neg") if is_wider else ("dtype", "shape", "conj", "neg"):
            lazy = what == "conj" and want.conj and not have.conj  # the numbers themselves; ATen leaves them a bit
            if getattr(want, what) != getattr(have, what) and not lazy:
                return f"{name}: {what} is {getattr(have, what)}, expected {getattr(want, what)}"
        if strict and _significant_strides(want) != _significant_strides(have):
            return f"{name}: stride is {have.stride}, expected {want.stride} (shape {want.shape})"
        if _significant_strides(have) != _significant_strides(want) and not _is_dense(have):
            return f"{name}: stride is {have.stride}, with gaps; expected {want.stride} (shape {want.shape})"
    return _aliasing(native, got, may_copy)


def _unmarked(value: object) -> object:
    """Return a packed value without the marks of sparse tensors that come twice; `_aliasing` compares their memory."""
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items() if key != "same"}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def _sparse(value: object) -> list[object]:
    """Size and flag of each sparse tensor in a packed value."""
    if isinstance(value, dict) and "sparse_coo" in value:
        return [(value["sparse_coo"]["size"], value["sparse_coo"]["coalesced"])]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in inner for found in _sparse(item)]


def _outline(value: object) -> str:
    """The shape of a result: `tensor`, `(tensor, None)`."""
    if isinstance(value, dict):
        tag, content = next(iter(value.items()))
        if tag == "sparse_coo":
            return f"sparse_coo{content['size']}, {'' if content['coalesced'] else 'not '}coalesced"
        return f"({', '.join(map(_outline, content))})" if tag == "tuple" else str(tag)
    if isinstance(value, list):
        return f"[{', '.join(map(_outline, value))}]"
    return str(value)


def _significant_strides(ref: TensorRef) -> list[int]:
    return [] if 0 in ref.shape else [s for n, s in zip(ref.shape, ref.stride, strict=True) if n > 1]


def _is_dense(ref: TensorRef) -> bool:
    """Whether the elements fill their memory, in whichever order of dimensions."""
    extent = 1
    for stride, size in sorted((s, n) for n, s in zip(ref.shape, ref.stride, strict=True) if n > 1):
        if stride != extent:
            return 0 in ref.shape
        extent *= size
    return True


def _aliasing(native: Packed, got: Packed, may_copy: bool) -> str | None:
    """The partition of the non-empty tensors into storages must be the operator's own, but for copies that may be."""
    names = tensor_names(native.tree)
    filled = [i for i, ref in enumerate(native.tensors) if numel(ref)]
    for a, i in enumerate(filled):
        for j in filled[a + 1 :]:
            want = native.tensors[i].group == native.tensors[j].group
            have = got.tensors[i].group == got.tensors[j].group
            if want and not have and may_copy:
                continue
            if want != have:
                verb = "must share" if want else "must not share"
                return f"{names[j]} {verb} memory with {names[i]}"
            if want and _distance(native, i, j) != _distance(got, i, j):
                return f"{names[j]} is another part of the memory it shares with {names[i]}"
    return None


def _distance(packed: Packed, i: int, j: int) -> int:
    return packed.tensors[j].offset - packed.tensors[i].offset


def _written(expected: Expected) -> set[int]:
    """Tensors whose values the operator decides: results, and arguments whose bytes it changed or may change."""
    changed = _changed_groups(expected)
    fresh = range(len(expected.before.tensors), len(expected.native.tensors))
    return {i for i, ref in enumerate(expected.native.tensors) if i in fresh or ref.group in changed}


def _changed_groups(expected: Expected) -> set[int]:
    """Groups of the arguments whose bytes the operator changed, or whose contents were not recorded; if it draws, of
    those that it writes, which draws may leave as they were."""
    before, native = expected.before, expected.native
    changed = {g for g in range(len(before.groups)) if before.data[g] is None or before.data[g] != native.data[g]}
    if law_of(expected.overload) is None:
        return changed
    drawn = written(resolve(expected.overload))
    names = tensor_names(before.tree)
    return changed | {ref.group for ref, name in zip(before.tensors, names, strict=True) if name in drawn}


def _same_bytes(before: Packed, got: Packed, index: int) -> bool:
    """Whether the whole group of an untouched tensor still has the bytes that it was given."""
    want, have = before.tensors[index], got.tensors[index]
    if not numel(want):
        return True
    return bytes(before.data[want.group] or b"") == bytes(got.data[have.group] or b"")


def error_ratio(expected: Expected, got: Packed) -> float | None:
    """The largest error of the results as a multiple of ATen's own, both against float64; None where ATen has none, or
    draws."""
    if law_of(expected.overload) is not None:
        return None
    ours, atens = 0.0, 0.0
    for i in range(len(expected.before.tensors), len(expected.native.tensors)):
        native = real(contents(expected.native, i))
        if native.is_floating_point() and native.numel():
            ours, atens = max(ours, _error(expected, got, i)), max(atens, _error(expected, expected.native, i))
    return ours / atens if atens else None


def _error(expected: Expected, answer: Packed, index: int) -> float:
    given = tuple(real(aligned(expected.overload, expected, p, index)) for p in (answer, expected.values))
    have, exact = compared(expected.overload, expected, answer, index) or given
    return largest(have.to(torch.float64) - exact.to(torch.float64))


def _outside_elements(before: Packed, got: Packed, groups: set[int]) -> bool:
    """Whether bytes that lie between the elements of the tensors of a written group were changed."""
    for g in groups:
        given = before.data[g]
        refs = [i for i, ref in enumerate(before.tensors) if ref.group == g]
        if given is None or not refs or not len(given):
            continue
        after = got.data[got.tensors[refs[0]].group]
        covered = torch.zeros(len(given), dtype=torch.bool)
        for i in refs:
            ref = before.tensors[i]
            size = getattr(torch, ref.dtype).itemsize
            strides = (*(s * size for s in ref.stride), 1)
            covered.as_strided((*ref.shape, size), strides, ref.offset).fill_(True)
        if after is None or len(after) != len(given):
            return True
        changed = _bytes(given) != _bytes(after)
        if bool((changed & ~covered).any()):
            return True
    return False


def _bytes(data: Bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def telling(overload: str, expected: Expected) -> list[int]:
    """Tensors that show whether a kernel ran: non-empty results in memory of their own, and arguments that changed.

    A result that is nothing but zeros, ones or what fresh memory is poisoned with tells nothing, since it may be a
    constant answer; nor does one that is a copy of an argument, of an operator that does more than copy, as adding at
    no index; nor an argument that changed by no more than the tolerance, but for draws.
    """
    before, native = expected.before, expected.native
    owned = [i for i, ref in enumerate(native.tensors) if ref.group >= len(before.groups)]
    changed = [i for i, ref in enumerate(before.tensors) if ref.group in _changed_groups(expected)]
    unknown = [i for i in changed if before.data[before.tensors[i].group] is None]
    drawn = law_of(overload) is not None
    moved = [i for i in changed if i in unknown or drawn or is_wrong(overload, expected, before, i)]
    shown = [i for i in (*owned, *moved) if numel(native.tensors[i]) and not _tells_nothing(contents(native, i))]
    return shown if drawn or _copies(overload) else [i for i in shown if not is_copy(contents(native, i), before)]


def _copies(overload: str) -> bool:
    """Whether the operator's answer is a copy, whatever its arguments."""
    return _base(overload) in _ABOUT_STRIDES | {"copy"} or _base(overload).endswith("_copy")


def is_copy(values: torch.Tensor, before: Packed) -> bool:
    """Whether these are the values of one argument, which may be expanded or converted on the way."""
    return any(_same(contents(before, i), values) for i, r in enumerate(before.tensors) if before.data[r.group])


def _same(given: torch.Tensor, values: torch.Tensor) -> bool:
    shapes = zip(reversed(given.shape), reversed(values.shape), strict=False)
    if (
        given.dim() > values.dim()
        or any(n not in (1, m) for n, m in shapes)
        or given.is_complex() > values.is_complex()
    ):
        return False
    return torch.allclose(given.to(values.dtype).expand(values.shape), values, 0, 0, equal_nan=True)


def _tells_nothing(values: torch.Tensor) -> bool:
    """Whether every element is 0, or 1, or what fresh memory is poisoned with."""
    return bool((values == 0).all()) or bool((values == 1).all()) or is_poison(values)


def is_poison(values: torch.Tensor) -> bool:
    """Whether every element is what torch.empty is filled with in a child: NaN, the largest integer, True."""
    if values.is_floating_point() or values.is_complex():
        return bool(values.isnan().all())
    limit = True if values.dtype is torch.bool else torch.iinfo(values.dtype).max
    return bool((values == limit).all())


def comparable(expected: Expected, ghost: Packed) -> bool:
    """Whether a run whose kernels did nothing gave tensors that can be looked at beside the expected ones."""
    return _structure(expected.native, ghost, strict=False, may_copy=False) is None


def right_elements(overload: str, expected: Expected, answer: Packed, index: int) -> torch.Tensor:
    """Where one tensor of an answer is right."""
    return ~differences(overload, expected, answer, index)[2]


def right_without_kernels(overload: str, expected: Expected, ghost: Packed) -> bool:
    """Whether a run whose kernels did nothing still gives every telling tensor: no kernel computed it."""
    shown = telling(overload, expected)
    if not shown or not comparable(expected, ghost):
        return False
    if law_of(overload) is not None:  # what was there before may be lawful too, as the largest integer
        given = len(expected.before.tensors)
        left = [_same_bytes(expected.before, ghost, i) if i < given else is_poison(contents(ghost, i)) for i in shown]
        return not any(left) and not unlawful(expected, ghost)
    if all(is_poison(contents(ghost, i)) for i in shown):  # as fresh memory is: infinite for ATen, NaN by the reference
        return False
    return not any(is_wrong(overload, expected, ghost, i) for i in shown)
