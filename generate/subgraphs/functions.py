"""TakenFunctions of kernel files, taken into another file with all that they use."""

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
    """What a file that is being written takes from kernel files. blocks: names to import, by module. texts: of the
    functions and constants taken, by the name that each has now."""

    blocks: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    texts: dict[str, str] = field(default_factory=dict)
    _taken: dict[tuple[str, str], str] = field(default_factory=dict)

    def block(self, module: str, name: str) -> str:
        """Import a block; returns its name."""
        self.blocks[module].add(name)
        return name

    def take(self, function: ScalarFunction, called: str = "") -> str:
        """Returns the name that the function has in the file that is being written. called: what to name it."""
        return self._take(function.name, function.file, called)

    def _take(self, name: str, file: KernelFile, called: str = "") -> str:
        own, imported = _parts(file)
        if name not in own:
            return self.block(imported.get(name) or _module_of(name), name)
        key = (name, file.key)  # what a text means is its file's affair
        if key not in self._taken:
            self._taken[key] = new = self._free(called or name)
            text, uses = own[name]
            for used in sorted(uses & (own.keys() | imported.keys()) - {name}):
                text = _renamed(text, used, self._take(used, file))
            self.texts[new] = _renamed(text, name, new)
        return self._taken[key]

    def _free(self, name: str) -> str:
        """The name, or that with a number where it is taken or a block's."""
        taken = set(self._taken.values()) | blocks_in((BLOCKS,)).blocks.keys() | {"fused", "finish", "wrapper"}
        found, number = name, 1
        while found in taken:
            number += 1
            found = f"{name}_{number}"
        return found


def _module_of(name: str) -> str:
    """The module of a block that kernel files may import."""
    blocks = blocks_in((BLOCKS,)).blocks
    if name not in blocks or not blocks[name].public:
        raise Uncomposable(f"{name} is no function that another file can import")
    return blocks[name].place.partition("/")[2].partition(".py")[0]


def _renamed(text: str, old: str, new: str) -> str:
    return text if old == new else re.sub(rf"(?<![\w.]){old}\b", new, text)


@cache
def _parts(file: KernelFile) -> tuple[dict[str, tuple[str, frozenset[str]]], dict[str, str]]:
    """Of a kernel file as it is written its own functions and constants, each with the names that it reads, and the
    module of each block that it imports."""
    own: dict[str, tuple[str, frozenset[str]]] = {}
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
        own.update((name, ("\n".join(lines[first - 1 : node.end_lineno]), uses)) for name in names)
    return own, imported
