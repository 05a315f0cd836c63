"""Kernel files and the blocks that they import, linked into one text.

A kernel file may say `from blocks.elementwise import elementwise`. Linked, its own lines stay where they are, the
import turns into a comment, and after the last line comes each function that it names and each that those use, under a
line such as `# blocks/elementwise.py:12` that says where it is from. The linked text is what is linted, judged and
exported; it needs nothing but torch and Triton. Verdicts are keyed by what it means (`key_of`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeAlias, TypeGuard

from traces import UserError
from verify import syntax
from verify.meaning import defined, digest, imports_blocks, meaning_of, names_read, parts_of

State: TypeAlias = tuple[tuple[tuple[Path, int], ...], ...]  # of each directory its modules, with when they changed
_PACKAGE = "blocks"
_IMPORTS = ast.Import | ast.ImportFrom
_PLACE = re.compile(rf"^# ({_PACKAGE}/\w+\.py):(\d+)$")


class LinkError(UserError):
    """An import of blocks that cannot be followed. line: of the importing file; instead: what to write."""

    def __init__(self, line: int, what: str, instead: str) -> None:
        super().__init__(f"line {line}: {what}; {instead}")
        self.line, self.what, self.instead = line, what, instead


@dataclass(frozen=True)
class Block:
    """One function or constant of a block module, as it is written there.

    uses: names that it reads. node: it, parsed. imports: the imports of its module that it uses.
    """

    name: str
    place: str  # such as blocks/elementwise.py:12
    text: str
    uses: frozenset[str]
    public: bool
    signature: str  # its parameters, as they are written
    summary: str  # the first line of its docstring
    node: ast.stmt
    imports: tuple[ast.stmt, ...]

    @cached_property
    def meaning(self) -> str:
        """A digest of what it means, with the imports that it uses."""
        return digest([meaning_of(self.node), *sorted(map(meaning_of, self.imports))])


@dataclass(frozen=True)
class Blocks:
    """Every block of a directory, by name, and the statements by which modules import what is no block.

    imports: with the name that each gives, if only a platform's blocks use it; then it stands in no file but theirs.
    """

    blocks: dict[str, Block]
    imports: dict[str, str]

    def module(self, name: str) -> dict[str, Block]:
        """The public blocks of one module."""
        return {n: b for n, b in self._by_module[name].items() if b.public}

    @property
    def modules(self) -> list[str]:
        return sorted(self._by_module)

    @cached_property
    def _by_module(self) -> dict[str, dict[str, Block]]:
        found: dict[str, dict[str, Block]] = {}
        for name, block in self.blocks.items():
            found.setdefault(block.place.split("/")[1].split(".")[0], {})[name] = block
        return found


def blocks_in(directories: Sequence[Path]) -> Blocks:
    """Return the blocks of these directories; a function takes precedence over that of the same name and module in a
    later one.

    Raises UserError for a module that is not Python, and for a name that stands in two modules.
    """
    return _read(state(directories))


def state(directories: Sequence[Path]) -> State:
    """Return the modules of these directories, as they are now."""
    found = []
    for directory in directories:
        files = [p for p in sorted(directory.glob("*.py")) if p.name != "__init__.py"]
        found.append(tuple((p, p.stat().st_mtime_ns) for p in files))
    return tuple(found)


@lru_cache(maxsize=8)
def _read(directories: State) -> Blocks:
    found: dict[str, Block] = {}
    imports: dict[str, str] = {}
    for position, files in enumerate(reversed(directories)):
        here: dict[str, Block] = {}
        for path, _ in files:
            for block in _module(path, imports, ours=position == 0):
                if block.name in here:
                    raise UserError(f"{path}: {block.name} is already in {here[block.name].place}; rename one of them")
                here[block.name] = block
                ours = found.get(block.name, block).place.split(":")[0]
                if ours != block.place.split(":")[0]:
                    where = ours.removeprefix(f"{_PACKAGE}/")
                    raise UserError(f"{path}: {block.name} is a name of {ours}; write it in {where}, or rename it")
        found |= here
    return Blocks(found, imports)


def _module(path: Path, imports: dict[str, str], ours: bool) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    try:
        tree = syntax.parse(text)
    except SyntaxError as error:
        raise UserError(f"{path}: line {error.lineno}: not valid Python: {error.msg}") from error
    of_module = {name: node for node in tree.body if isinstance(node, _IMPORTS) for name in defined(node)}
    offered = next((ast.literal_eval(n.value) for n in tree.body if _is_all(n)), None)
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            names, summary = [node.name], (ast.get_docstring(node) or "").split("\n")[0]
            signature = ast.unparse(node.args)
        elif isinstance(node, ast.Assign) and not _is_all(node) and all(isinstance(t, ast.Name) for t in node.targets):
            first, names = node.lineno, [t.id for t in node.targets if isinstance(t, ast.Name)]
            signature = summary = ""
        else:
            if isinstance(node, ast.Import):
                imports.setdefault(ast.unparse(node), "" if ours else node.names[0].asname or node.names[0].name)
            continue
        uses = names_read(node)
        used = tuple({of_module[name]: None for name in sorted(uses & of_module.keys())})
        place = f"{_PACKAGE}/{path.name}:{first}"
        body = "\n".join(lines[first - 1 : node.end_lineno])
        for name in names:
            public = name[0] != "_" if offered is None else name in offered
            found.append(Block(name, place, body, uses - {name}, public, signature, summary, node, used))
    return found


def _is_all(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """Whether this is `__all__ = [...]`: the blocks that kernel files may import; without it all but those with `_`."""
    return isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == ["__all__"]


def link(source: str, directories: Sequence[Path] = (), now: State | None = None) -> str:
    """The one text that a kernel file and its blocks are; the same text where it imports none.

    directories: blocks, a platform's before the library's. now: their state, if it is known. Raises LinkError for an
    import that cannot be followed; a text that is not Python is returned as it is.
    """
    if not re.search(rf"^[ \t]*(from|import)[ \t]+{_PACKAGE}\b", source, re.MULTILINE):
        return source
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    blocks = _read(now or state(directories))
    lines = source.split("\n")
    wanted: dict[str, int] = {}
    for node in tree.body:
        if _imports_blocks(node):
            wanted |= dict.fromkeys(_imported(node, blocks), node.lineno)
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = f"# {lines[number]}"
    own = {n.name: n.lineno for n in tree.body if isinstance(n, ast.FunctionDef)}
    own |= {
        t.id: n.lineno for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
    }
    needed = _closure(wanted, blocks)
    for block in needed:
        if block.name in own:
            what = (
                f"{block.name} is also the name of a block ({block.place.split(':')[0]}) that is linked into this file"
            )
            raise LinkError(own[block.name], what, "give your own another name")
    have = {ast.unparse(n) for n in tree.body if isinstance(n, ast.Import)}
    used = frozenset[str]().union(*(b.uses for b in needed))
    missing = [text for text, name in blocks.imports.items() if text not in have and (not name or name in used)]
    parts = ["\n".join(lines).rstrip("\n"), *(["\n".join(missing)] if missing else [])]
    return "\n\n\n".join([*parts, *(f"# {b.place}\n{b.text}" for b in needed)]) + "\n"


@lru_cache(maxsize=4096)
def key_of(source: str, now: State) -> str:
    """Return the SHA-256 of what a kernel file means, with the blocks that it uses (verify/meaning.py).

    now: the blocks, as they are when it is linked. Raises LinkError for an import that cannot be followed.
    """
    tree, imported, blocks = syntax.parse(source), dict[str, int](), Blocks({}, {})
    for node in tree.body:
        if _imports_blocks(node):
            blocks = _read(now)
            imported |= dict.fromkeys(_imported(node, blocks), node.lineno)
    used: list[Block] = []

    def beyond(needed: set[str]) -> set[str]:
        used[:] = _closure({name: imported[name] for name in needed & imported.keys()}, blocks)
        return set[str]().union(*(block.uses for block in used))

    parts = parts_of(tree, beyond)
    return digest([*parts, *sorted(f"{block.name} {block.meaning}" for block in used)])


def written(linked: str, line: int) -> tuple[str, int]:
    """Where a line of a linked text was written: ("blocks/elementwise.py", 14), or ("", line) in the file itself."""
    lines = linked.split("\n")
    for number in range(min(line, len(lines)), 0, -1):
        place = _PLACE.match(lines[number - 1])
        if place:
            return place[1], int(place[2]) + line - number - 1
    return "", line


def told_line(linked: str, line: int) -> str:
    """A line of a linked text in words: `line 7`, or `line 14 of blocks/elementwise.py`."""
    block, number = written(linked, line)
    return f"line {number} of {block}" if block else f"line {number}"


def _imports_blocks(node: ast.stmt) -> bool:
    """Raises LinkError for the forms of import that are not followed."""
    if isinstance(node, ast.Import) and any(a.name.split(".")[0] == _PACKAGE for a in node.names):
        raise LinkError(node.lineno, ast.unparse(node), "write `from blocks.MODULE import NAME, ...`")
    return imports_blocks(node)


def _imported(node: ast.stmt, blocks: Blocks) -> list[str]:
    assert isinstance(node, ast.ImportFrom) and node.module is not None
    line, (_, *rest) = node.lineno, node.module.split(".")
    if len(rest) != 1 or rest[0] not in blocks.modules:
        modules = ", ".join(f"{_PACKAGE}.{m}" for m in blocks.modules)
        raise LinkError(line, f"no module {node.module}", f"choose from {modules}")
    public = blocks.module(rest[0])
    for alias in node.names:
        if alias.name not in public:
            raise LinkError(line, f"{node.module} has no {alias.name}", f"choose from {', '.join(public)}")
        if alias.asname:
            raise LinkError(line, f"{alias.name} as {alias.asname}", "use blocks under their own names")
    return [alias.name for alias in node.names]


def _closure(names: dict[str, int], blocks: Blocks) -> list[Block]:
    """These blocks and all that they use, in the order of their modules and lines."""
    found: dict[str, Block] = {}
    left = list(names)
    while left:
        block = blocks.blocks[left.pop()]
        if block.name not in found:
            found[block.name] = block
            left += [n for n in block.uses if n in blocks.blocks]
    place = {b.name: (b.place.split(":")[0], int(b.place.split(":")[1])) for b in found.values()}
    return sorted(found.values(), key=lambda b: place[b.name])
