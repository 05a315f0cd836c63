"""Kernels that are kept as tables: tests/verify/corpus/bad/*.txt, known bad ones, and tests/verify/kernels.txt.

    python -m tests.support.corpus DIRECTORY    # write tests/verify/corpus there as files, for `enable verify --report`

A table has entries. An entry begins with its fields, one or more in a line, and its replacements; its own text follows:

    # name: exp_attached_output  # op: exp  # family: J  # outcome: CHEAT|WRONG  # layer: types, lint
    # base: map, launch_map  # tries: the output carries requires_grad  # should be caught by: exact types
    # return o => o.requires_grad_(True)
    #     return o

`base` names the texts that the kernel is made of: entries `# part: NAME` of any table, or another kernel. The own text
stands at `...`, or last. A replacement applies to the whole base; a comment without ` => ` continues the one before it.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).parents[1] / "verify" / "corpus"
HONEST = sorted((CORPUS / "honest").glob("*.py"))
HEADER = ("op", "name", "public", "family", "tries", "should be caught by", "outcome", "layer")
ENTRY = re.compile(r"((?:# .*\n)+)((?:.*\n)*?)(?:\n(?=# (?:part|name|public): )|\Z)")


class Entry(NamedTuple):
    """An entry of a table."""

    fields: dict[str, str]
    replacements: list[tuple[str, str]]
    own: str

    @classmethod
    def read(cls, head: str, own: str) -> Entry:
        """Return the entry with these comments."""
        fields, *changes = re.split(r"^# (?=.* => )", head.rstrip("\n"), flags=re.MULTILINE)
        pairs = [change.rstrip("\n").replace("\n# ", "\n").split(" => ", 1) for change in changes]
        found = re.findall(r"# ([a-z ]+): (.*?)(?=  # |$)", fields, re.MULTILINE)
        return cls(dict(found), [(old, new) for old, new in pairs], own.strip("\n"))


def replaced(source: str, *changes: tuple[str, str]) -> str:
    """Return the source with the second text of each change for the first. Raises ValueError without the first."""
    for old, new in changes:
        if old not in source:
            raise ValueError(f"no {old!r} to replace in:\n{source}")
        source = source.replace(old, new)
    return source


class Tables:
    """Kernels of one or more tables."""

    def __init__(self, *paths: Path) -> None:
        read = [Entry.read(*match.groups()) for path in paths for match in ENTRY.finditer(path.read_text())]
        self.entries = {next(iter(entry.fields.values())): entry for entry in read}

    def kernels(self) -> dict[str, str]:
        """Return the programs of the kernels by their names, without comments."""
        return {name: self.body(name) for name, entry in sorted(self.entries.items()) if "part" not in entry.fields}

    def body(self, name: str) -> str:
        """Return the program of an entry."""
        entry = self.entries[name]
        base = entry.fields.get("base", "...").split(", ")
        text = "\n\n\n".join("..." if name == "..." else self.body(name).rstrip("\n") for name in base)
        text = replaced(text, *entry.replacements)
        text = text.replace("...", entry.own) if "..." in base else f"{text}\n\n\n{entry.own}"
        return text.strip("\n") + "\n"


BAD = Tables(*sorted((CORPUS / "bad").glob("*.txt")))


def bad_kernels() -> dict[str, str]:
    """Return the texts of the bad kernels by their names, each with its fields as comments."""
    texts = {}
    for name, text in BAD.kernels().items():
        fields = BAD.entries[name].fields
        header = [f"# {field}: {fields[field]}\n" for field in HEADER if field in fields]
        texts[name] = "".join(header) + f"\n\n{text}"
    return texts


def main(directory: Path) -> None:
    """Write all kernels as files."""
    (directory / "bad").mkdir(parents=True)
    for name, text in bad_kernels().items():
        (directory / "bad" / f"{name}.py").write_text(text)
    shutil.copytree(CORPUS / "honest", directory / "honest")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
