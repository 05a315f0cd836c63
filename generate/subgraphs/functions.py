"""Copy functions from kernel files into a generated file, together with all the names they use."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

from generate import BLOCKS
from generate.subgraphs.asking import ScalarFunction, Uncomposable
from verify.contract.kernel_file import KernelFile
from verify.linking import blocks_in


@dataclass
class TakenFunctions:
    """The functions and imports that a generated file takes from kernel files.

    Attributes:
        blocks: Names to import, by block module.
        texts: Source of the copied functions and constants, by their new names.
    """

    blocks: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    texts: dict[str, str] = field(default_factory=dict)
    _taken: dict[tuple[str, str], str] = field(default_factory=dict)

    def block(self, module: str, name: str) -> str:
        """Import a block, and return its name."""
        self.blocks[module].add(name)
        return name

    def take(self, function: ScalarFunction, called: str = "") -> str:
        """Copy a function, and return its name in the generated file; `called` is the preferred name."""
        return self._take(function.name, function.file, called)

    def _take(self, name: str, file: KernelFile, called: str = "") -> str:
        """Copy a definition and, recursively, the definitions it uses."""
        definitions, imported = _parts(file)
        if name not in definitions:
            return self.block(imported.get(name) or _module_of(name), name)
        key = (name, file.key)  # equal names in different files may have different meanings
        if key not in self._taken:
            self._taken[key] = new = self._free(called or name)
            text, uses = definitions[name]
            for used in sorted(uses & (definitions.keys() | imported.keys()) - {name}):
                text = _renamed(text, used, self._take(used, file))
            self.texts[new] = _renamed(text, name, new)
        return self._taken[key]

    def _free(self, name: str) -> str:
        """Return the name, with a number appended if it is taken or is a block's name."""
        taken = set(self._taken.values()) | blocks_in((BLOCKS,)).blocks.keys() | {"fused", "finish", "wrapper"}
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        return candidate


def _module_of(name: str) -> str:
    """Return the module of a public block, or raise Uncomposable."""
    blocks = blocks_in((BLOCKS,)).blocks
    if name not in blocks or not blocks[name].public:
        raise Uncomposable(f"{name} is no function that another file can import")
    return blocks[name].location.partition("/")[2].partition(".py")[0]


def _renamed(text: str, old: str, new: str) -> str:
    """Replace a name in source text."""
    return text if old == new else re.sub(rf"(?<![\w.]){old}\b", new, text)


@cache
def _parts(file: KernelFile) -> tuple[dict[str, tuple[str, frozenset[str]]], dict[str, str]]:
    """Return a kernel file's own definitions and its imported blocks.

    The definitions are functions and constants: their source and the names they read. Imported blocks map to modules.
    """
    definitions: dict[str, tuple[str, frozenset[str]]] = {}
    imported: dict[str, str] = {}
    lines = file.written.split("\n")
    for node in ast.parse(file.written).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("blocks."):
            imported.update((alias.name, str(node.module).removeprefix("blocks.")) for alias in node.names)
            continue
        names = [node.name] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.Assign):
            names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        uses = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
        definitions.update((name, ("\n".join(lines[first - 1 : node.end_lineno]), uses)) for name in names)
    return definitions, imported
