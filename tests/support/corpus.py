"""Known bad kernels, from the tables tests/verify/corpus/bad/*.txt, and the files of unusual honest ones.

    python -m tests.support.corpus DIRECTORY    # write them there as files, for `enable verify --report DIRECTORY`

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
from functools import cache
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


@cache
def entries() -> dict[str, Entry]:
    """Return the entries of all tables by their names."""
    tables = [path.read_text() for path in sorted((CORPUS / "bad").glob("*.txt"))]
    read = [Entry.read(*match.groups()) for table in tables for match in ENTRY.finditer(table)]
    return {next(iter(entry.fields.values())): entry for entry in read}


def replaced(source: str, old: str, new: str) -> str:
    """Return the source with `new` wherever it had `old`. Raises ValueError if it has none."""
    if old not in source:
        raise ValueError(f"no {old!r} to replace in:\n{source}")
    return source.replace(old, new)


def body(name: str) -> str:
    """Return the program of an entry, without comments."""
    entry = entries()[name]
    base = entry.fields.get("base", "...").split(", ")
    text = "\n\n\n".join("..." if name == "..." else body(name) for name in base)
    for old, new in entry.replacements:
        text = replaced(text, old, new)
    return text.replace("...", entry.own) if "..." in base else f"{text}\n\n\n{entry.own}".strip("\n")


def bad_kernels() -> dict[str, str]:
    """Return the texts of the bad kernels by their names, each with its fields as comments."""
    texts = {}
    for name, entry in entries().items():
        if "part" not in entry.fields:
            header = [f"# {field}: {entry.fields[field]}" for field in HEADER if field in entry.fields]
            texts[name] = "\n".join(header) + f"\n\n\n{body(name)}\n"
    return dict(sorted(texts.items()))


def main(directory: Path) -> None:
    """Write all kernels as files."""
    (directory / "bad").mkdir(parents=True)
    for name, text in bad_kernels().items():
        (directory / "bad" / f"{name}.py").write_text(text)
    shutil.copytree(CORPUS / "honest", directory / "honest")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
