"""Write a platform file from rules, with the evidence for each rule in a comment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from enable.discover.discovery import Discovery
from enable.discover.rules import ALIGNMENT, FORBIDDEN, HINT, LIMIT, NOTE, REMOVE, DialectRule, derive
from verify import platforms
from verify.lint.profile import DEFAULT

BASE = "sim"
SHOWN = 3  # evidence lines for one rule; the report has all
COMMENT = 200  # characters in one evidence line


def base_lists() -> dict[str, Any]:
    """Return the lists of the base dialect."""
    lists: dict[str, Any] = yaml.safe_load((platforms.PROFILES / f"{DEFAULT}.yaml").read_text())
    return lists


def platform_text(discovery: Discovery) -> str:
    """Return the text of the platform file."""
    base = base_lists()
    rules = derive(discovery.verdicts.values(), base)
    total, failed = len(discovery.verdicts), sum(v.failed for v in discovery.verdicts.values())
    how = "run" if discovery.device else "compiled, not run"
    lines = [
        f"# Discovered with Triton {discovery.triton} and torch {discovery.torch}.",
        f"# {total} programs, {how}; {failed} failed.",
        "# Each rule has the program that failed, and the first line of its error.",
        f"base: {_base(discovery.device)}",
        f"description: {json.dumps(f'discovered: {discovery.label}')}",
        "targets:",
        f"  - {json.dumps(dict(discovery.target))}",
    ]
    if discovery.device:
        lines.append(f"device: {discovery.device}")
    if discovery.module:
        lines.append(f"module: {discovery.module}")
    for rule in _of(rules, ALIGNMENT):
        lines += [*_evidence(rule, ""), f"alignment: {rule.value}"]
    lines += limits_lines(rules)
    lines += ["lint:", f"  base: {DEFAULT}"]
    forbidden = [line for rule in _of(rules, FORBIDDEN) for line in (*_evidence(rule, "    "), f"    - {rule.value}")]
    lines += ["  forbidden:", *forbidden] if forbidden else []
    lines += _removals(list(_of(rules, REMOVE)))
    lines += _hints([rule for rule in _of(rules, HINT) if rule.key[0] not in base["hints"]])
    notes = list(_of(rules, NOTE))
    if notes:
        lines += ["# Failures that no field of this file can express:"]
        lines += [f"# - {_line(rule.evidence)}" for rule in notes]
    return "\n".join(lines) + "\n"


def _base(device: str) -> str:
    """Return the packaged platform for a device, whose files a confined child may open, or `sim`."""
    packaged = [name for name in platforms.names() if platforms.load(name).device == device]
    return next((name for name in packaged if platforms.load(name).fits()), BASE) if device else BASE


def _of(rules: Iterable[DialectRule], kind: str) -> Iterator[DialectRule]:
    return (rule for rule in rules if rule.kind == kind)


def _line(text: str) -> str:
    """Return a text as one line for a comment, without control characters."""
    plain = "".join(c if c.isprintable() else " " for c in text.splitlines()[0])
    return plain[:COMMENT]


def _evidence(rule: DialectRule, margin: str) -> list[str]:
    lines = rule.evidence.splitlines()
    more = [f"{margin}# and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [f"{margin}# {_line(line)}" for line in lines[:SHOWN]] + more


def limits_lines(rules: Iterable[DialectRule]) -> list[str]:
    """Return the lines of `limits`."""
    limits = list(_of(rules, LIMIT))
    if not limits:
        return []
    lines = ["limits:"]
    for rule in limits:
        if len(rule.key) == 1:
            lines += [*_evidence(rule, "  "), f"  {rule.key[0]}: {json.dumps(rule.value)}"]
    functions = [rule for rule in limits if rule.key[0] == "functions"]
    lines += ["  functions:"] if functions else []
    for rule in functions:
        lines += [*_evidence(rule, "    "), f"    {rule.key[1]}: {json.dumps(rule.value)}"]
    return lines


def _removals(rules: list[DialectRule]) -> list[str]:
    """Return the lines of `remove`, grouped by list."""
    if not rules:
        return []
    lists: dict[tuple[str, ...], list[DialectRule]] = {}
    for rule in sorted(rules, key=lambda rule: len(rule.key)):
        lists.setdefault(rule.key, []).append(rule)
    lines, opened = ["  remove:"], ""
    for key, removed in lists.items():
        margin = "    " * len(key)
        if len(key) > 1:
            if opened != key[0]:
                lines.append(f"    {key[0]}:")
                opened = key[0]
            margin = "      "
        lines.append(f"{margin}{key[-1]}:")
        for rule in removed:
            lines += [*_evidence(rule, f"{margin}  "), f"{margin}  - {json.dumps(rule.value)}"]
    return lines


def _hints(rules: list[DialectRule]) -> list[str]:
    lines = ["  hints:"] if rules else []
    for rule in rules:
        lines += [*_evidence(rule, "    "), f"    {json.dumps(rule.key[0])}: {json.dumps(_line(str(rule.value)))}"]
    return lines


def summary(discovery: Discovery) -> Mapping[str, int]:
    """Return the number of rules by section."""
    kinds = (REMOVE, FORBIDDEN, ALIGNMENT, LIMIT, HINT, NOTE)
    rules = derive(discovery.verdicts.values(), base_lists())
    return {kind: sum(rule.kind == kind for rule in rules) for kind in kinds}
