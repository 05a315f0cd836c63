"""Compare a child's result with the operator's answer: first the structure, then the values.

All decisions use metadata and raw bytes that the parent decodes itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch

from traces.facts import tagged
from traces.overloads import resolve, written
from traces.subgraphs import is_subgraph
from traces.values import Bytes, Packed, TensorRef, numel
from verify.cases.case import Expected
from verify.cases.packed import contents, tensor_names
from verify.comparison.accuracy import accuracy_report
from verify.comparison.deviation import differences, is_single, is_wrong, largest, real
from verify.comparison.factors import aligned, compared
from verify.comparison.laws import law_of, unlawful
from verify.comparison.open_results import as_aten_gives

_ABOUT_STRIDES = tagged("about_strides")

# Results that are float32 on GPUs, although on the CPU, which computes the reference, they have the arguments'
# dtype.
_FLOAT32_ON_GPUS = {"native_layer_norm": ("return[1]", "return[2]")}


SINGLE = "single precision"  # rule for a float64 result that was computed in float32


@dataclass(frozen=True)
class Mismatch:
    """Difference from the reference: `detail` is one line, `report` is the evidence, `rule` is SINGLE or empty."""

    detail: str
    report: str
    rule: str = ""


def compare(
    overload: str, expected: Expected, got: Packed, strict: bool = True, any_order: bool = False
) -> Mismatch | None:
    """Return the first mismatch between an answer and the reference, or None if there is none.

    For an overload that draws, values are checked against its law (verify/comparison/laws.py).

    Args:
        overload: Overload name.
        expected: ATen's answer.
        got: Arguments after the call, and "return".
        strict: Require ATen's strides. Otherwise, results may also be dense in another order of dimensions,
            unless the operator's meaning fixes the strides. The same relaxation applies to a subgraph whose
            arguments differ in that order, because its steps determine the order there.
        any_order: Results may be dense in any order of dimensions, whatever the operator.
    """
    got = as_aten_gives(overload, expected, got)
    wider = _FLOAT32_ON_GPUS.get(_base(overload), ())
    fixed = fixes_strides(overload, expected) or (strict and not (is_subgraph(overload) and _mixed(expected.before)))
    fixed = fixed and not any_order
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
    """Return the accuracy report for one tensor, with a line for each other tensor that the operator determines."""
    names = tensor_names(expected.native.tree)
    derived = "" if compared(overload, expected, got, index) is None else " (the factors' product, then the vectors')"
    detail, report = accuracy_report(f"{names[index]}{derived}", *differences(overload, expected, got, index))
    other_lines = []
    for i in sorted(_written(expected) - {index}):
        wrong = differences(overload, expected, got, i)[2]
        count = int(wrong.sum())
        other_lines.append(f"  {names[i]} is {f'wrong too: {count} of {wrong.numel()} elements' if count else 'right'}")
    return Mismatch(
        detail,
        "\n".join([report, *other_lines]),
        SINGLE if is_single(overload, expected, got, _written(expected)) else "",
    )


def _base(overload: str) -> str:
    return overload.removeprefix("aten::").partition(".")[0]


def fixes_strides(overload: str, expected: Expected) -> bool:
    """Return True if the operator's meaning determines the strides: it is about strides, or results are views."""
    return _base(overload) in _ABOUT_STRIDES or is_view(expected)


def is_view(expected: Expected) -> bool:
    """Return True if a result shares an argument's memory."""
    count = len(expected.before.groups)
    return any(ref.group < count for ref in expected.native.tensors[len(expected.before.tensors) :])


def _mixed(before: Packed) -> bool:
    """Return True if arguments differ in their dimensions' memory order, or one has overlapping elements."""
    refs = [ref for ref in before.tensors if sum(n > 1 for n in ref.shape) > 1]
    orders = {tuple(sorted((s, i - len(r.stride)) for i, s in enumerate(r.stride) if r.shape[i] > 1)) for r in refs}
    ascending = {tuple(dim for _, dim in order) for order in orders}
    return len(ascending) > 1 or any(stride == 0 for order in orders for stride, _ in order)


def _may_copy(overload: str, strict: bool) -> bool:
    """Return True if a result may be a copy although ATen returns the argument, as dropout does outside training."""
    return not strict and all(r.alias_info is None for r in resolve(overload)._schema.returns)


def _structure(native: Packed, got: Packed, strict: bool, may_copy: bool, wider: Collection[str] = ()) -> str | None:
    """Describe the first difference in containers, then in dtype, shape and strides, and then in memory sharing.

    `wider` has the names of tensors that may be float32.
    """
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
        for field in ("shape", "conj", "neg") if is_wider else ("dtype", "shape", "conj", "neg"):
            # a plain tensor with the conjugated numbers; ATen sets the conj bit instead
            lazy = field == "conj" and want.conj and not have.conj
            if getattr(want, field) != getattr(have, field) and not lazy:
                return f"{name}: {field} is {getattr(have, field)}, expected {getattr(want, field)}"
        if strict and _significant_strides(want) != _significant_strides(have):
            return f"{name}: stride is {have.stride}, expected {want.stride} (shape {want.shape})"
        if _significant_strides(have) != _significant_strides(want) and not _is_dense(have):
            return f"{name}: stride is {have.stride}, with gaps; expected {want.stride} (shape {want.shape})"
    return _aliasing(native, got, may_copy)


def _unmarked(value: object) -> object:
    """Return a packed value without the marks of repeated sparse tensors; `_aliasing` compares their memory."""
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items() if key != "same"}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def _sparse(value: object) -> list[object]:
    """Return size and coalesced flag for each sparse tensor in a packed value."""
    if isinstance(value, dict) and "sparse_coo" in value:
        return [(value["sparse_coo"]["size"], value["sparse_coo"]["coalesced"])]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [entry for item in inner for entry in _sparse(item)]


def _outline(value: object) -> str:
    """Describe the containers in a result: `tensor`, `(tensor, None)`."""
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
    """Return True if the elements fill their memory, in any order of dimensions."""
    extent = 1
    for stride, size in sorted((s, n) for n, s in zip(ref.shape, ref.stride, strict=True) if n > 1):
        if stride != extent:
            return 0 in ref.shape
        extent *= size
    return True


def _aliasing(native: Packed, got: Packed, may_copy: bool) -> str | None:
    """Compare which non-empty tensors share a storage, and at which distances; permitted copies are ignored."""
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
    """Return the tensors whose values the operator determines: results, and arguments that it changed or may change."""
    changed = _changed_groups(expected)
    fresh = range(len(expected.before.tensors), len(expected.native.tensors))
    return {i for i, ref in enumerate(expected.native.tensors) if i in fresh or ref.group in changed}


def _changed_groups(expected: Expected) -> set[int]:
    """Return the argument groups whose bytes the operator changed, or whose contents were not recorded.

    If the operator draws, all arguments that it writes count, because draws may leave them unchanged.
    """
    before, native = expected.before, expected.native
    changed = {g for g in range(len(before.groups)) if before.data[g] is None or before.data[g] != native.data[g]}
    if law_of(expected.overload) is None:
        return changed
    drawn = written(resolve(expected.overload))
    names = tensor_names(before.tree)
    return changed | {ref.group for ref, name in zip(before.tensors, names, strict=True) if name in drawn}


def _same_bytes(before: Packed, got: Packed, index: int) -> bool:
    """Return True if the complete group of an untouched tensor has the same bytes as before the call."""
    want, have = before.tensors[index], got.tensors[index]
    if not numel(want):
        return True
    return bytes(before.data[want.group] or b"") == bytes(got.data[have.group] or b"")


def error_ratio(expected: Expected, got: Packed) -> float | None:
    """Return the largest error in the results divided by ATen's own, both relative to float64.

    Return None if ATen has no error, or if the operator draws.
    """
    if law_of(expected.overload) is not None:
        return None
    kernel_error, aten_error = 0.0, 0.0
    for i in range(len(expected.before.tensors), len(expected.native.tensors)):
        native = real(contents(expected.native, i))
        if native.is_floating_point() and native.numel():
            kernel_error, aten_error = (
                max(kernel_error, _error(expected, got, i)),
                max(aten_error, _error(expected, expected.native, i)),
            )
    return kernel_error / aten_error if aten_error else None


def _error(expected: Expected, answer: Packed, index: int) -> float:
    pair = tuple(real(aligned(expected.overload, expected, p, index)) for p in (answer, expected.values))
    have, exact = compared(expected.overload, expected, answer, index) or pair
    return largest(have.to(torch.float64) - exact.to(torch.float64))


def _outside_elements(before: Packed, got: Packed, groups: set[int]) -> bool:
    """Return True if bytes between tensor elements in a written group were changed."""
    for g in groups:
        initial = before.data[g]
        refs = [i for i, ref in enumerate(before.tensors) if ref.group == g]
        if initial is None or not refs or not len(initial):
            continue
        after = got.data[got.tensors[refs[0]].group]
        covered = torch.zeros(len(initial), dtype=torch.bool)
        for i in refs:
            ref = before.tensors[i]
            size = getattr(torch, ref.dtype).itemsize
            strides = (*(s * size for s in ref.stride), 1)
            covered.as_strided((*ref.shape, size), strides, ref.offset).fill_(True)
        if after is None or len(after) != len(initial):
            return True
        changed = _bytes(initial) != _bytes(after)
        if bool((changed & ~covered).any()):
            return True
    return False


def _bytes(data: Bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def telling(overload: str, expected: Expected) -> list[int]:
    """Return the tensors that show if a kernel ran: non-empty results in their own memory, and changed arguments.

    Some tensors are excluded, because they can be right without a kernel:

    - results that contain only zeros, ones or the fill value for fresh memory, since the answer may be constant;
    - copies of an argument, if the operator does more than copy (for example, index_add with no index);
    - arguments that changed by less than the tolerance, unless the operator draws.
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
    """Return True if the operator's answer is always a copy."""
    return _base(overload) in _ABOUT_STRIDES | {"copy"} or _base(overload).endswith("_copy")


def is_copy(values: torch.Tensor, before: Packed) -> bool:
    """Return True if `values` are those of one argument, possibly expanded or converted."""
    return any(_same(contents(before, i), values) for i, r in enumerate(before.tensors) if before.data[r.group])


def _same(source: torch.Tensor, values: torch.Tensor) -> bool:
    shapes = zip(reversed(source.shape), reversed(values.shape), strict=False)
    if (
        source.dim() > values.dim()
        or any(n not in (1, m) for n, m in shapes)
        or source.is_complex() > values.is_complex()
    ):
        return False
    return torch.allclose(source.to(values.dtype).expand(values.shape), values, 0, 0, equal_nan=True)


def _tells_nothing(values: torch.Tensor) -> bool:
    """Return True if every element is 0, or every element is 1, or all have the fill value for fresh memory."""
    return bool((values == 0).all()) or bool((values == 1).all()) or is_poison(values)


def is_poison(values: torch.Tensor) -> bool:
    """Return True if every element has the fill value for torch.empty in a child: NaN, the largest integer, True."""
    if values.is_floating_point() or values.is_complex():
        return bool(values.isnan().all())
    limit = True if values.dtype is torch.bool else torch.iinfo(values.dtype).max
    return bool((values == limit).all())


def comparable(expected: Expected, ghost: Packed) -> bool:
    """Return True if the results from a run without kernels have the expected structure."""
    return _structure(expected.native, ghost, strict=False, may_copy=False) is None


def right_elements(overload: str, expected: Expected, answer: Packed, index: int) -> torch.Tensor:
    """Return a mask for the right elements in an answer's tensor."""
    return ~differences(overload, expected, answer, index)[2]


def right_without_kernels(overload: str, expected: Expected, ghost: Packed) -> bool:
    """Return True if a run without kernels still has the right values in every telling tensor.

    In that case no kernel computed them.
    """
    shown = telling(overload, expected)
    if not shown or not comparable(expected, ghost):
        return False
    if law_of(overload) is not None:  # the initial contents may be lawful too, for example the largest integer
        count = len(expected.before.tensors)
        untouched = [
            _same_bytes(expected.before, ghost, i) if i < count else is_poison(contents(ghost, i)) for i in shown
        ]
        return not any(untouched) and not unlawful(expected, ghost)
    # fresh memory: ATen may give infinity and the reference NaN there
    if all(is_poison(contents(ghost, i)) for i in shown):
        return False
    return not any(is_wrong(overload, expected, ghost, i) for i in shown)
