"""Derive the rules of a dialect from verdicts on the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from enable.discover.entries import FLOATS8
from enable.discover.verdicts import SLOW, WORKS, EntryVerdict

REMOVE, FORBIDDEN, ALIGNMENT, LIMIT, HINT, NOTE = "remove", "forbidden", "alignment", "limits", "hints", "note"
KEPT_CONSTRUCTS = ("Call",)  # without calls, no kernel could be written
HALVES = ("float16", "bfloat16")
SHORT = {"bool": "i1", "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}


@dataclass(frozen=True)
class DialectRule:
    """One rule with its evidence.

    Attributes:
        kind: Section in the file: REMOVE, FORBIDDEN, ALIGNMENT, LIMIT, HINT, or NOTE for a comment only.
        key: Keys within the section, such as ("kernel", "names").
        value: Value of the rule.
        evidence: Name of the failing entry, and the first line of its error.
    """

    kind: str
    key: tuple[str, ...]
    value: Any
    evidence: str


def derive(verdicts: Iterable[EntryVerdict], base: Mapping[str, Any]) -> list[DialectRule]:
    """Return the rules that the failing entries imply.

    Args:
        verdicts: Verdicts on the catalogue or a part of it.
        base: Lists of the base dialect, as in its YAML file. Only names in these lists are removed.
    """
    by_subject: dict[str, list[EntryVerdict]] = {}
    rules: list[DialectRule] = []
    for each in verdicts:
        if each.verdict == SLOW:  # kernels may use a slow feature
            rules += _notes([each])
        if not each.explained_by:
            usable = replace(each, verdict=WORKS) if each.verdict == SLOW else each
            by_subject.setdefault(each.entry.subject, []).append(usable)
    for subject, group in by_subject.items():
        if any(each.failed for each in group):
            rules += _rules(subject, group, base)
    return _merged(rules)


def _rules(subject: str, group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    failed = [each for each in group if each.failed]
    is_complete = len(failed) == len(group)
    special = _SPECIAL.get(subject)
    if special is not None:
        yield from special(group, base)
    elif subject in base["kernel"]["constructs"]:
        if is_complete and subject not in KEPT_CONSTRUCTS:
            yield DialectRule(REMOVE, ("kernel", "constructs"), subject, failed[0].evidence)
        else:
            yield from _notes(failed)
    elif subject.startswith("tl."):
        yield from _function(subject, group, base)
    else:
        yield from _notes(failed)


def _notes(failed: Iterable[EntryVerdict]) -> Iterator[DialectRule]:
    """Yield comments for failures that no field of a dialect can express."""
    for each in failed:
        yield DialectRule(NOTE, (), each.entry.name, each.evidence)


def _removed(
    base: Mapping[str, Any], key: tuple[str, str], names: Iterable[str], evidence: str
) -> Iterator[DialectRule]:
    """Yield the removal of those names that the base has."""
    for name in names:
        if name in base[key[0]][key[1]]:
            yield DialectRule(REMOVE, key, name, evidence)


def _dtypes(group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    for each in group:
        if not each.failed:
            continue
        dtype = each.entry.form["dtype"]
        if dtype in FLOATS8:  # kernel files may handle these as bytes, so the dtype stays
            yield DialectRule(NOTE, (), each.entry.name, each.evidence)
            continue
        if dtype in base["dtypes"]:
            yield DialectRule(REMOVE, ("dtypes",), dtype, each.evidence)
        name = "int1" if dtype == "bool" else dtype
        short = SHORT.get(dtype, name.replace("uint", "u").replace("int", "i"))
        words = [f"tl.{name}", short, *(["u1"] if dtype == "bool" else [])]
        yield from _removed(base, ("kernel", "names"), words[:1], each.evidence)
        yield from _removed(base, ("kernel", "annotations"), words, each.evidence)
        yield DialectRule(HINT, (f"tl.{name}",), f"this chip has no {dtype}", each.evidence)


def _function(subject: str, group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    """Yield the rules for a function: its removal, the dtypes that it takes, or a hint."""
    failed = [each for each in group if each.failed]
    if subject not in base["kernel"]["names"]:
        yield from _notes(failed)
        return
    if len(failed) == len(group):
        short = subject.removeprefix("tl.")
        evidence = failed[0].evidence
        yield from _removed(base, ("kernel", "names"), (subject, f"tl.math.{short}"), evidence)
        yield from _removed(base, ("kernel", "attributes"), (short,), evidence)
        yield DialectRule(HINT, (subject,), f"this chip has no {subject}: {failed[0].message}", evidence)
        return
    by_dtype = [each for each in group if set(each.entry.form) == {"dtype"}]
    refused = [each for each in by_dtype if each.failed]
    if refused:
        working = [each.entry.form["dtype"] for each in by_dtype if not each.failed]
        for each in refused:
            yield DialectRule(LIMIT, ("functions", subject), working, each.evidence)
    for each in failed:
        if each not in refused:
            form = ", ".join(f"{axis} {value}" for axis, value in each.entry.form.items())
            yield DialectRule(HINT, (subject,), f"not with {form}", each.evidence)


def _product(group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    shaped = [each for each in group if "shape" in each.entry.form]
    working = [_shape(each) for each in shaped if not each.failed]
    refused = [each for each in shaped if each.failed]
    by_dtype = [each for each in group if set(each.entry.form) == {"dtype"}]
    if not any(not each.failed for each in group):
        yield from _function("tl.dot", group, base)
        return
    dtypes = [each.entry.form["dtype"] for each in by_dtype if not each.failed]
    if any("precision" in each.entry.form and not each.failed for each in group):
        dtypes.append("float32")
    for each in by_dtype:
        if each.failed and dtypes:
            yield DialectRule(LIMIT, ("dot_dtypes",), dtypes, each.evidence)
    smallest, largest = ([choose(axis) for axis in zip(*working, strict=True)] for choose in (min, max))
    unclear = []
    for each in refused:
        shape = _shape(each)
        if any(size < least for size, least in zip(shape, smallest, strict=False)):
            yield DialectRule(LIMIT, ("dot_smallest",), smallest, each.evidence)
        elif any(size > most for size, most in zip(shape, largest, strict=False)):
            yield DialectRule(LIMIT, ("dot_largest",), largest, each.evidence)
        else:
            unclear.append(each)
    handled = {each.entry.name for each in (*by_dtype, *refused)} - {each.entry.name for each in unclear}
    for each in group:
        if each.failed and each.entry.name not in handled:
            form = ", ".join(f"{axis} {value}" for axis, value in each.entry.form.items())
            yield DialectRule(HINT, ("tl.dot",), f"not with {form}", each.evidence)


def _shape(each: EntryVerdict) -> tuple[int, ...]:
    return tuple(int(size) for size in each.entry.form["shape"].split("x"))


def _forbidden(rule: str) -> Any:
    def rules(group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
        relevant = [e for e in group if rule != "half-maths" or e.entry.form["dtype"] in HALVES]
        failed = [each for each in relevant if each.failed]
        if failed and len(failed) == len(relevant):
            yield DialectRule(FORBIDDEN, (), rule, failed[0].evidence)
            failed = []
        yield from _notes(failed)
        yield from _notes(each for each in group if each.failed and each not in relevant)

    return rules


def _alignment(group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    failed = [each for each in group if each.failed]
    smallest = max(failed, key=lambda each: int(each.entry.form["bytes"]))
    required = 2 * int(smallest.entry.form["bytes"])
    if any(not each.failed for each in group):
        yield DialectRule(ALIGNMENT, (), required, smallest.evidence)
    else:
        yield from _notes(failed)


def _block(group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    smallest = min((each for each in group if each.failed), key=lambda each: int(each.entry.form["elements"]))
    sizes = [int(each.entry.form["elements"]) for each in group if not each.failed]
    working = [size for size in sizes if size < int(smallest.entry.form["elements"])]
    if working:
        yield DialectRule(LIMIT, ("block_elements",), max(working), smallest.evidence)
    else:
        yield from _notes(each for each in group if each.failed)


def _grid(group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    yield from _notes(each for each in group if each.failed)  # dimension sizes are not tried


def _option(group: list[EntryVerdict], base: Mapping[str, Any]) -> Iterator[DialectRule]:
    """Yield the working values of num_warps and num_stages, or the removal of an option without any besides 1."""
    option = group[0].entry.subject
    value = {each.entry.name: int(next(iter(each.entry.form.values()))) for each in group}
    failed = [each for each in group if each.failed]
    working = sorted(value[each.entry.name] for each in group if not each.failed)
    for each in failed:
        if option in ("num_warps", "num_stages") and working:
            yield DialectRule(LIMIT, (option,), working, each.evidence)
        elif set(working) <= {1}:
            yield from _removed(base, ("kernel", "launch_options"), (option,), each.evidence)
        else:
            yield from _notes([each])


_SPECIAL = {
    "copy": _dtypes,
    "tl.dot": _product,
    "scatter store": _forbidden("scatter-store"),
    "arithmetic": _forbidden("half-maths"),
    "alignment": _alignment,
    "block": _block,
    "grid": _grid,
    **dict.fromkeys(("num_warps", "num_stages", "num_ctas", "maxnreg"), _option),
}


def _merged(rules: Iterable[DialectRule]) -> list[DialectRule]:
    """Join the hints for one name, and drop repetitions, keeping the evidence of each."""
    merged: dict[tuple[Any, ...], DialectRule] = {}
    for rule in rules:
        is_hint = rule.kind == HINT
        identity = (rule.kind, rule.key, None if is_hint else str(rule.value))
        previous = merged.get(identity)
        if previous is None:
            merged[identity] = rule
            continue
        value = previous.value
        if is_hint and rule.value not in str(value).split("; "):
            value = f"{value}; {rule.value}"
        evidence = "\n".join(dict.fromkeys([*previous.evidence.splitlines(), *rule.evidence.splitlines()]))
        merged[identity] = DialectRule(rule.kind, rule.key, value, evidence)
    return list(merged.values())
