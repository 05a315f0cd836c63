"""Facts about operators, by tag: facts.yaml, which has the reason for each and says which names a tag lists.

A module reads the tags that it needs when it is imported, so that a name that is no tag fails there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("facts.yaml")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # as safe, and ten times as fast if PyYAML has libyaml


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the facts of a file by tag: the reason, and names under the key that says what they name."""
    facts: dict[str, dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    return facts


def names(fact: dict[str, Any]) -> frozenset[str]:
    """Return the names that a tag lists, whatever they name."""
    return frozenset(name for key, listed in fact.items() if key != "reason" for name in listed)


_NAMES = {tag: names(fact) for tag, fact in read(FILE).items()}


def tagged(tag: str) -> frozenset[str]:
    """Return the names that a tag lists. Raises KeyError if there is no such tag.

    Write the tag as a literal: what judging reads is part of its version (verify/judging/layers.py).
    """
    return _NAMES[tag]
