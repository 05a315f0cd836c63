"""Facts about operators, by tag, from facts.yaml, which gives a reason for each tag.

A module reads the tags that it needs at import time, so an unknown tag fails immediately.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("facts.yaml")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # equally safe, and ten times as fast if PyYAML has libyaml


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the facts in a file by tag: the reason, and names under a key that says which kind of name they are."""
    facts: dict[str, dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    return facts


def names(fact: dict[str, Any]) -> frozenset[str]:
    """Return the names that a tag lists, whatever kind they are."""
    return frozenset(name for key, listed in fact.items() if key != "reason" for name in listed)


_NAMES = {tag: names(fact) for tag, fact in read(FILE).items()}


def tagged(tag: str) -> frozenset[str]:
    """Return the names that a tag lists. Raise KeyError for an unknown tag.

    Pass the tag as a literal: the tags that judging reads are part of its version (verify/judging/layers.py).
    """
    return _NAMES[tag]
