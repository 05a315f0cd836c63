"""Link kernel files and the blocks that they import into one text.

A kernel file may contain `from blocks.elementwise import elementwise`. In the linked text the file's own lines
keep their positions, and the import becomes a comment. The imported functions, and all functions that they use,
follow after the last line. Each has a line such as `# blocks/elementwise.py:12` above it, which gives its origin.
The linked text is linted, judged and exported; it needs only torch and Triton. Verdicts are keyed by its meaning
(`key_of`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeAlias, TypeGuard

from traces import UserError
from verify import language, syntax
from verify.meaning import defined, digest, imports_blocks, meaning_of, names_read, parts_of

# for each directory, its modules and their modification times
State: TypeAlias = tuple[tuple[tuple[Path, int], ...], ...]
_PACKAGE = "blocks"
_IMPORTS = ast.Import | ast.ImportFrom
_PLACE = re.compile(rf"^# ({_PACKAGE}/\w+\.py):(\d+)$")


class LinkError(UserError):
    """Error raised if a block import cannot be resolved.

    Attributes:
        line: Line in the importing file.
        problem: Description of the problem.
        instead: A form to write instead.
    """

    def __init__(self, line: int, problem: str, instead: str) -> None:
        super().__init__(f"line {line}: {problem}; {instead}")
        self.line, self.problem, self.instead = line, problem, instead


@dataclass(frozen=True)
class Block:
    """One function or constant of a block module, with its source text.

    Attributes:
        name: Function or constant name.
        location: Module and line.
        text: Source text.
        uses: Names that it reads.
        public: True if kernel files may import it.
        signature: Parameters as written.
        summary: First docstring line.
        node: The statement's syntax tree.
        imports: Imports in its module that it uses.
    """

    name: str
    location: str  # such as blocks/elementwise.py:12
    text: str
    uses: frozenset[str]
    public: bool
    signature: str  # parameters as written
    summary: str  # first line of the docstring
    node: ast.stmt
    imports: tuple[ast.stmt, ...]

    @cached_property
    def meaning(self) -> str:
        """Digest of the block's meaning, including the imports that it uses."""
        return digest([meaning_of(self.node), *sorted(map(meaning_of, self.imports))])

    @cached_property
    def read_at_once(self) -> frozenset[str]:
        """Names that the block reads when its module is imported."""
        return _read_at_once(self.node)


@dataclass(frozen=True)
class Blocks:
    """All blocks of some directories, by name, and the `import` statements in their modules.

    Attributes:
        blocks: Block by name.
        imports: For each import statement, the name that it binds if only a platform's blocks use it, else "".
            Statements with a name are linked only into files that use that name.
    """

    blocks: dict[str, Block]
    imports: dict[str, str]

    def module(self, name: str) -> dict[str, Block]:
        """Return one module's public blocks."""
        return {n: b for n, b in self._by_module[name].items() if b.public}

    @property
    def modules(self) -> list[str]:
        return sorted(self._by_module)

    @cached_property
    def _by_module(self) -> dict[str, dict[str, Block]]:
        modules: dict[str, dict[str, Block]] = {}
        for name, block in self.blocks.items():
            modules.setdefault(block.location.split("/")[1].split(".")[0], {})[name] = block
        return modules


def blocks_in(directories: Sequence[Path]) -> Blocks:
    """Return the blocks in `directories`; earlier directories take precedence.

    A block overrides the block of the same name and module in a later directory.

    Args:
        directories: A platform's blocks first, then the library's.

    Raises:
        UserError: A module is not valid Python, or two modules define the same name.
    """
    return _read(state(directories))


def state(directories: Sequence[Path]) -> State:
    """Return the modules in `directories` with their current modification times."""
    states = []
    for directory in directories:
        files = [p for p in sorted(directory.glob("*.py")) if p.name != "__init__.py"]
        states.append(tuple((p, p.stat().st_mtime_ns) for p in files))
    return tuple(states)


@lru_cache(maxsize=8)
def _read(directories: State) -> Blocks:
    blocks: dict[str, Block] = {}
    imports: dict[str, str] = {}
    replacing = _language(directories)
    for position, files in enumerate(reversed(directories)):
        current: dict[str, Block] = {}
        for path, _ in files:
            for block in _module(path, imports, replacing, ours=position == 0):
                if block.name in current:
                    raise UserError(
                        f"{path}: {block.name} is already in {current[block.name].location}; rename one of them"
                    )
                current[block.name] = block
                ours = blocks.get(block.name, block).location.split(":")[0]
                if ours != block.location.split(":")[0]:
                    where = ours.removeprefix(f"{_PACKAGE}/")
                    raise UserError(f"{path}: {block.name} is a name of {ours}; write it in {where}, or rename it")
        blocks |= current
    return Blocks(blocks, imports)


@lru_cache(maxsize=8)
def _language(directories: State) -> dict[str, str]:
    """Return what replaces names of Triton's language in these directories (verify/language.py)."""
    modules = [path for files in directories for path, _ in files if path.stem == language.MODULE]
    texts = [path.read_text(encoding="utf-8") for path in modules]
    return language.replacements(name for text in texts for name in language.defined_in(text))


def own_language(directories: Sequence[Path]) -> set[str]:
    """Return the names of Triton's language that blocks in these directories replace, such as `tl.erf`."""
    return set(_language(state(directories)))


def _module(path: Path, imports: dict[str, str], replacing: Mapping[str, str], ours: bool) -> list[Block]:
    text = language.replaced(path.read_text(encoding="utf-8"), replacing)
    lines = text.split("\n")
    try:
        tree = syntax.parse(text)
    except SyntaxError as error:
        raise UserError(f"{path}: line {error.lineno}: not valid Python: {error.msg}") from error
    module_imports = {name: node for node in tree.body if isinstance(node, _IMPORTS) for name in defined(node)}
    exported = next((ast.literal_eval(n.value) for n in tree.body if _is_all(n)), None)
    blocks = []
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
        used = tuple({module_imports[name]: None for name in sorted(uses & module_imports.keys())})
        origin = f"{_PACKAGE}/{path.name}:{first}"
        body = "\n".join(lines[first - 1 : node.end_lineno])
        for name in names:
            public = name[0] != "_" if exported is None else name in exported
            blocks.append(Block(name, origin, body, uses - {name}, public, signature, summary, node, used))
    return blocks


def _is_all(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """Return True for `__all__ = [...]`, the list of blocks that kernel files may import.

    Without this list, all names without a leading underscore may be imported.
    """
    return isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == ["__all__"]


def link(source: str, directories: Sequence[Path] = (), now: State | None = None) -> str:
    """Return one text with a kernel file and its blocks; a file without blocks is returned unchanged.

    A text that is not valid Python is returned unchanged, too.

    Args:
        source: Kernel file text.
        directories: Block directories, with a platform's before the library's.
        now: State for the directories, if it is known.

    Raises:
        LinkError: A block import cannot be resolved, or the file redefines a linked block.
    """
    now = now or state(directories)
    source, read = _in_own_language(source, now)
    if not read and not re.search(rf"^[ \t]*(from|import)[ \t]+{_PACKAGE}\b", source, re.MULTILINE):
        return source
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    blocks = _read(now)
    lines = source.split("\n")
    wanted = dict.fromkeys(read, 1)
    for node in tree.body:
        if _imports_blocks(node):
            wanted |= dict.fromkeys(_imported(node, blocks), node.lineno)
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = f"# {lines[number]}"
    definitions = {n.name: n.lineno for n in tree.body if isinstance(n, ast.FunctionDef)}
    definitions |= {
        t.id: n.lineno for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)
    }
    for node in tree.body:
        if not _imports_blocks(node) and (early := sorted(_read_at_once(node) & wanted.keys())):
            raise LinkError(
                node.lineno, f"{early[0]} is read before it is defined, as blocks follow", "read it in a function"
            )
    needed = _ordered(_closure(wanted, blocks))
    for block in needed:
        if block.name in definitions:
            module = block.location.split(":")[0]
            message = f"{block.name} is also the name of a block ({module}) that is linked into this file"
            raise LinkError(definitions[block.name], message, "give your own another name")
    present = {ast.unparse(n) for n in tree.body if isinstance(n, ast.Import)}
    used = frozenset[str]().union(*(b.uses for b in needed))
    missing = [text for text, name in blocks.imports.items() if text not in present and (not name or name in used)]
    parts = ["\n".join(lines).rstrip("\n"), *(["\n".join(missing)] if missing else [])]
    return "\n\n\n".join([*parts, *(f"# {b.location}\n{b.text}" for b in needed)]) + "\n"


@lru_cache(maxsize=4096)
def key_of(source: str, now: State) -> str:
    """Return the SHA-256 of the meaning of a kernel file and its blocks (verify/meaning.py).

    Args:
        source: Kernel file text.
        now: State for the block directories.

    Raises:
        LinkError: A block import cannot be resolved.
    """
    source, read = _in_own_language(source, now)
    tree, imported = syntax.parse(source), dict.fromkeys(read, 1)
    blocks = _read(now) if read else Blocks({}, {})
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


def _in_own_language(source: str, now: State) -> tuple[str, list[str]]:
    """Return a kernel file with a platform's names in place of Triton's, and those that it then reads."""
    replacing = _language(now)
    text = language.replaced(source, replacing)
    return text, sorted({n for n in replacing.values() if text is not source and re.search(rf"\b{n}\b", text)})


def written(linked: str, line: int) -> tuple[str, int]:
    """Return the origin for a line in a linked text.

    The result is such as ("blocks/elementwise.py", 14) for a block, or ("", line) for the kernel file itself.
    """
    lines = linked.split("\n")
    for number in range(min(line, len(lines)), 0, -1):
        match = _PLACE.match(lines[number - 1])
        if match:
            return match[1], int(match[2]) + line - number - 1
    return "", line


def told_line(linked: str, line: int) -> str:
    """Describe a line of a linked text: `line 7`, or `line 14 of blocks/elementwise.py`."""
    block, number = written(linked, line)
    return f"line {number} of {block}" if block else f"line {number}"


def _imports_blocks(node: ast.stmt) -> bool:
    """Return True if the statement imports blocks; raise LinkError for an unsupported form of import."""
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
        # names are unique over all modules, so a kernel file stays valid when a block moves to another module
        moved = alias.name in blocks.blocks and blocks.blocks[alias.name].public
        if alias.name not in public and not moved:
            raise LinkError(line, f"{node.module} has no {alias.name}", f"choose from {', '.join(public)}")
        if alias.asname:
            raise LinkError(line, f"{alias.name} as {alias.asname}", "use blocks under their own names")
    return [alias.name for alias in node.names]


def _closure(names: dict[str, int], blocks: Blocks) -> list[Block]:
    """Return these blocks and all blocks that they use, sorted by module and line."""
    blocks_by_name: dict[str, Block] = {}
    pending = list(names)
    while pending:
        block = blocks.blocks[pending.pop()]
        if block.name not in blocks_by_name:
            blocks_by_name[block.name] = block
            pending += [n for n in block.uses if n in blocks.blocks]
    positions = {b.name: (b.location.split(":")[0], int(b.location.split(":")[1])) for b in blocks_by_name.values()}
    return sorted(blocks_by_name.values(), key=lambda b: positions[b.name])


def _ordered(blocks: list[Block]) -> list[Block]:
    """Return the blocks in the same order, but a constant before what reads it at import."""
    by_name = {block.name: block for block in blocks}
    ordered: dict[str, Block] = {}

    def append(block: Block) -> None:
        for used in sorted(block.read_at_once & by_name.keys() - ordered.keys() - {block.name}):
            append(by_name[used])
        ordered.setdefault(block.name, block)

    for block in blocks:
        append(block)
    return list(ordered.values())


def _read_at_once(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement reads when the module is imported, such as a constant's or a default's."""
    if not isinstance(node, ast.FunctionDef):
        return names_read(node)
    at_once = [*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    return frozenset[str]().union(*map(names_read, at_once))
