"""Facts about operators: names that exist, tags that are read, reasons, and no contradictions."""

import ast
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest
import torch
import yaml

from traces import facts
from traces.overloads import base_name, kind, name_of, resolve
from verify.judging.layers import tags_read
from verify.operators import _stem

ROOT = Path(__file__).parents[2]
KINDS = {  # of work, by the tags that decide it before or instead of the schema
    "memory": ("allocation", "transfer", "bookkeeping"),
    "view": ("unstated_views", "of_parts"),
    "compute": ("reads_contents",),
}
DISJOINT = (tuple(tag for tags in KINDS.values() for tag in tags), ("exact", "pointwise", "laxer"))
WITHIN = {"copies": "exact", "growing": "allocation", "unsorted_unique": "unique", "sized_views": "views_in_order"}


def schemas():
    """The overloads of ATen in this PyTorch."""
    names = {(s.name, s.overload_name) for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")}
    return [resolve(f"{name}.{overload}" if overload else name) for name, overload in sorted(names)]


@pytest.fixture(scope="module")
def ops():
    return schemas()


@pytest.fixture(scope="module")
def existing(ops):
    """The names that a list may have, by its key."""
    return {
        "base_names": {base_name(op) for op in ops},
        "stems": {_stem(name_of(op)) for op in ops},
        "overloads": {name_of(op) for op in ops},
        "arguments": {a.name for op in ops for a in op._schema.arguments},
    }


@pytest.fixture(scope="module")
def programs():
    """The modules of the product, but for kernels, by file."""
    packages = ("traces", "capture", "verify", "generate", "enable")
    apart = ("verify/profiles", "generate/kernels", "generate/blocks", "generate/examples")
    files = [p for package in packages for p in ROOT.glob(f"{package}/**/*.py")]
    named = {p.relative_to(ROOT).as_posix(): p for p in files}
    return {name: ast.parse(p.read_text()) for name, p in named.items() if not name.startswith(apart)}


def malformed(parsed):
    """Tags without a reason or without exactly one list of names, each with a reason of its own or all without."""

    def is_reason(value):
        return isinstance(value, str) and value.strip()

    def is_list(listed):
        reasons = [*listed.values()] if isinstance(listed, dict) else []
        return bool(listed) and all(isinstance(name, str) for name in listed) and all(map(is_reason, reasons))

    def is_fact(fact):
        return (
            len(fact) == 2
            and is_reason(fact.get("reason"))
            and is_list(next(v for k, v in fact.items() if k != "reason"))
        )

    return [tag for tag, fact in parsed.items() if not is_fact(fact)]


def repeated_names(parsed):
    """Names that are twice under a tag."""
    lists = {
        tag: Counter(name for key, listed in fact.items() if key != "reason" for name in listed)
        for tag, fact in parsed.items()
    }
    return [f"{tag}: {name}" for tag, counts in lists.items() for name, times in counts.items() if times > 1]


def repeated_keys(text):
    """Keys that are twice in one mapping of a YAML text, of which a reader sees only the last."""

    def walk(node):
        if isinstance(node, yaml.MappingNode):
            counts = Counter(key.value for key, _ in node.value)
            yield from (key for key, times in counts.items() if times > 1)
            for _, value in node.value:
                yield from walk(value)

    return list(walk(yaml.compose(text)))


def unknown(parsed, existing):
    """Names that this PyTorch does not have, and lists of what no name is."""
    return [
        f"{tag}: {name}"
        for tag, fact in parsed.items()
        for key, listed in fact.items()
        if key != "reason"
        for name in listed
        if name not in existing.get(key, ())
    ]


def unmatched_tags(parsed, programs):
    """Tags that no program reads, and tags that are read and do not exist."""
    return parsed.keys() ^ {tag for program in programs.values() for tag in tags_read(program)}


def hidden_reads(programs):
    """Lines that read tags in a way that `tags_read` does not see."""
    nodes = [node for program in programs.values() for node in ast.walk(program)]
    renamed = [a.lineno for a in nodes if isinstance(a, ast.alias) and a.name == "tagged" and a.asname]
    return renamed + [n.lineno for n in nodes if isinstance(n, ast.Attribute) and n.attr == "tagged"]


def operator_lists(programs, existing):
    """Variables of modules that list operators, one of them under a name that only operators have.

    The lint lists methods of tensors, and functions of Python and Triton.
    """
    operators = existing["base_names"] | existing["stems"] | existing["overloads"]

    def listed(value):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1:
            value = value.args[0]  # of frozenset
        elements = value.elts if isinstance(value, ast.Set | ast.Tuple | ast.List) else ()
        return [e.value for e in elements if isinstance(e, ast.Constant)]

    return [
        f"{name}:{node.lineno}"
        for name, program in programs.items()
        for node in program.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and not name.startswith("verify/lint/")
        if len(names := listed(node.value)) > 1
        and operators.issuperset(names)
        and any("_" in n or ":" in n for n in names)
    ]


def contradictions(parsed):
    """Names under two tags that exclude each other, and names that are not under the tag which includes theirs."""
    of = {tag: facts.names(fact) for tag, fact in parsed.items()}
    twice = {n for tags in DISJOINT for n, times in Counter(n for tag in tags for n in of[tag]).items() if times > 1}
    return twice.union(*(of[tag] - of[whole] for tag, whole in WITHIN.items()))


def misjudged(parsed, ops):
    """Overloads whose kind is not the one that tags give them, as of those to which tags give two."""
    given = {
        name: {work for work, tags in KINDS.items() if any(name in facts.names(parsed[tag]) for tag in tags)}
        for name in set(map(base_name, ops))
    }
    out = {op for op in ops if any(a.is_out for a in op._schema.arguments)}  # is written, and so no view
    return [name_of(op) for op in ops if not given[base_name(op)] - ({"view"} if op in out else set()) <= {kind(op)}]


def test_facts_are_sound(ops, existing, programs):
    parsed = facts.read(facts.FILE)
    assert not malformed(parsed)
    assert not repeated_names(parsed) and not repeated_keys(facts.FILE.read_text())
    assert not unknown(parsed, existing)
    assert (
        not unmatched_tags(parsed, programs) and not hidden_reads(programs) and not operator_lists(programs, existing)
    )
    assert not contradictions(parsed)
    assert not misjudged(parsed, ops)


@pytest.fixture
def parsed():
    """The facts, for a fault to be sown."""
    return deepcopy(facts.read(facts.FILE))


@pytest.mark.parametrize(
    "fact",
    [
        {"stems": ["exp"]},
        {"reason": " ", "stems": ["exp"]},
        {"reason": "It is.", "stems": []},
        {"reason": "It is.", "stems": [True]},
        {"reason": "It is.", "stems": {"exp": ""}},
        {"reason": "It is.", "stems": ["exp"], "base_names": ["exp"]},
        {"reason": "It is."},
    ],
    ids=str,
)
def test_a_tag_needs_a_reason_and_one_list(parsed, fact):
    parsed["poles"] = fact
    assert malformed(parsed) == ["poles"]


def test_a_repeated_name_is_seen(parsed):
    parsed["poles"]["stems"].append("digamma")
    assert repeated_names(parsed) == ["poles: digamma"]


@pytest.mark.parametrize("text, key", [("a: {b: 1}\na: {c: 1}\n", "a"), ("a: {b: {c: 1, c: 2}}\n", "c")])
def test_a_repeated_key_is_seen(text, key):
    assert repeated_keys(text) == [key]


@pytest.mark.parametrize(
    "tag, key, name",
    [
        ("poles", "stems", "digamma_"),
        ("poles", "names", "digamma"),
        ("allocation", "base_names", "aten::empty"),
        ("bags", "overloads", "_embedding_bag"),
        ("updated", "arguments", "digamma"),
    ],
)
def test_a_name_that_pytorch_lacks_is_seen(parsed, existing, tag, key, name):
    parsed[tag] = {"reason": "It is.", key: [name]}
    assert unknown(parsed, existing) == [f"{tag}: {name}"]


def test_tags_that_nobody_reads_or_that_do_not_exist_are_seen(parsed, programs):
    parsed["zeros"] = parsed.pop("poles")
    assert unmatched_tags(parsed, programs) == {"zeros", "poles"}


@pytest.mark.parametrize(
    "text", ["from traces.facts import tagged as t", "from traces import facts\nfacts.tagged('a')"]
)
def test_reading_a_tag_out_of_sight_is_seen(text):
    assert hidden_reads({"a.py": ast.parse(text)}) and not list(tags_read(ast.parse(text)))


@pytest.mark.parametrize(
    "value", ['frozenset({"exp", "_softmax"})', '{"exp", "add_"}', '("aten::exp", "aten::log")', '["exp", "_softmax"]']
)
def test_a_list_of_operators_in_a_module_is_seen(existing, value):
    assert operator_lists({"traces/a.py": ast.parse(f"A = 1\n_OF: B = {value}\n")}, existing) == ["traces/a.py:2"]


def test_a_tag_that_is_no_literal_is_an_error():
    with pytest.raises(ValueError, match="malformed node"):
        list(tags_read(ast.parse("tagged(name)")))
    with pytest.raises(KeyError):
        facts.tagged("no such tag")


@pytest.mark.parametrize(
    "tag, name",
    [("pointwise", "cat"), ("laxer", "arange"), ("transfer", "empty"), ("copies", "exp"), ("growing", "set_")],
)
def test_a_contradiction_is_seen(parsed, tag, name):
    parsed[tag] = {"reason": "It is.", "names": [*facts.names(parsed[tag]), name]}
    assert contradictions(parsed) == {name}


@pytest.mark.parametrize("tag, name", [("reads_contents", "item"), ("unstated_views", "mm"), ("transfer", "t")])
def test_an_overload_of_another_kind_is_seen(parsed, ops, tag, name):
    parsed[tag]["base_names"].append(name)
    assert f"aten::{name}" in misjudged(parsed, ops)
