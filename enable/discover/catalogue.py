"""The catalogue of entries."""

from __future__ import annotations

from fnmatch import fnmatchcase

from enable.discover import blocks, control, functions, memory
from enable.discover.entries import CatalogueEntry
from traces import UserError


def catalogue(patterns: tuple[str, ...] = ()) -> list[CatalogueEntry]:
    """Return the entries, or those whose group, subject or name matches a pattern, with the entries that they need.

    Raises:
        UserError: A pattern matches nothing.
    """
    entries = {e.name: e for module in (memory, functions, blocks, control) for e in module.entries()}
    if not patterns:
        return list(entries.values())
    selected: set[str] = set()
    for pattern in patterns:
        names = [
            name for name, e in entries.items() if any(_matches(word, pattern) for word in (name, e.subject, e.group))
        ]
        if not names:
            groups = ", ".join(dict.fromkeys(e.group for e in entries.values()))
            raise UserError(f"no entry in the catalogue matches {pattern!r}; its groups are {groups}")
        while names:
            name = names.pop()
            if name not in selected:
                selected.add(name)
                names += entries[name].needs
    return [e for name, e in entries.items() if name in selected]


def _matches(word: str, pattern: str) -> bool:
    """Return True if a word matches a pattern; brackets in names are literal."""
    return fnmatchcase(word, pattern.replace("[", "[[]"))
