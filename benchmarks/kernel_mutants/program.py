"""Read the linked text of a kernel file: its functions, and the syntax nodes that a mutant may change.

Settings change speed and not results, so they are left out: launch options (`num_warps`), tile sizes of the host code,
and thresholds between two right paths. So are messages, assertions and what only `raise` reads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generate import BLOCKS
from generate.kernel_library import KERNELS
from verify.linking import link, written

# Names of tile sizes, warps and other choices that host code makes for speed.
SETTING = re.compile(
    r"(?i)(.*_)?(block|tile|tiles|warps|num_warps|stages|num_stages|num_ctas|rounds|chunk|hints?|even)(_[a-z0-9]+)?"
)
SETTING_WORDS = frozenset(
    ("small", "large", "long", "light", "wide_tile", "most", "programs", "elements", "missing", "multiple", "strict")
)
# Host functions that return only tile sizes, warps or parts.
SETTING_FUNCTIONS = frozenset(
    (
        *("small_tile", "reduction_tile", "reduction_warps", "tiling", "tile_grid", "fullest", "matmul_tile"),
        *("line_group", "_scan_tile", "row_blocks", "held_rows", "tuned", "fits_tiles", "fits_lines", "_even"),
    )
)
KEPT_CONSTANTS = frozenset(("INT32_MAX", "PHILOX_RANGE", "FP32_OVERFLOW", "HELD"))  # of values, not of speed
IGNORED_CALLS = frozenset(("static_assert", "static_print", "device_assert", "device_print", "isinstance", "cdiv"))
IGNORED_KEYWORDS = frozenset(("strict", "eviction_policy", "cache_modifier", "sem", "scope", "num_warps", "num_stages"))


@dataclass(frozen=True)
class Change:
    """One replacement in a program's text.

    Attributes:
        kind: Class of the mutant.
        start: Position of the first replaced character.
        end: Position after the last replaced character.
        text: Replacement.
    """

    kind: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Function:
    """One function of a program.

    Attributes:
        node: Its definition.
        is_device: True if Triton compiles it.
    """

    node: ast.FunctionDef
    is_device: bool


class Program:
    """The linked text of one kernel file."""

    def __init__(self, text: str) -> None:
        """Parse a linked text, which must be valid Python."""
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def position(self, line: int, column: int) -> int:
        """Return the position of a character from its line and its column in bytes, as `ast` counts them."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode()[:column].decode())

    def line(self, position: int) -> int:
        """Return the line of a position."""
        return self.text.count("\n", 0, position) + 1

    def statement(self, position: int) -> int:
        """Return the first line of the innermost statement around a position."""
        line = self.line(position)
        around = [n.lineno for n in ast.walk(self.tree) if isinstance(n, ast.stmt) and _includes(n, line)]
        return max(around, default=line)

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Return the positions at which a node starts and ends."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.position(node.lineno, node.col_offset), self.position(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Return a node's text."""
        start, end = self.span(node)
        return self.text[start:end]

    def operand(self, node: ast.expr) -> str:
        """Return an expression's text, in parentheses if operators around it could bind more tightly."""
        atoms = ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript | ast.Tuple | ast.List
        return self.source(node) if isinstance(node, atoms) else f"({self.source(node)})"

    def origin(self, line: int) -> tuple[str, int]:
        """Return the block module and line of a line of the text, or ("", line) for the kernel file itself."""
        return written(self.text, line)

    @cached_property
    def functions(self) -> list[Function]:
        """The functions that mutants may change."""
        nodes = [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]
        functions = [Function(node, bool(node.decorator_list)) for node in nodes]
        return [f for f in functions if f.is_device or f.node.name not in SETTING_FUNCTIONS]

    @cached_property
    def thresholds(self) -> frozenset[str]:
        """Names of the module's integer constants, which are tile sizes and thresholds."""
        names: set[str] = set()
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and not any(isinstance(n, ast.Tuple | ast.List) for n in ast.walk(node)):
                names |= {t.id for t in node.targets if isinstance(t, ast.Name) and t.id.isupper()}
        return frozenset(names - KEPT_CONSTANTS)

    def nodes(self, function: Function) -> Iterator[ast.AST]:
        """Yield the nodes of a function's body that a mutant may change, parents first."""
        for statement in function.node.body:
            yield from self._within(statement, function.is_device)

    def _within(self, node: ast.AST, is_device: bool) -> Iterator[ast.AST]:
        if _is_ignored(node) or (not is_device and self._is_setting(node)):
            return
        yield node
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator):
                yield from self._within(child, is_device)

    def _is_setting(self, node: ast.AST) -> bool:
        """Return True for host code that only chooses between tiles or paths."""
        if isinstance(node, ast.Assign):
            targets = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            return bool(targets) and all(map(is_setting, targets)) or self._reads_threshold(node)
        if isinstance(node, ast.keyword):
            return node.arg is not None and is_setting(node.arg)
        return isinstance(node, ast.Compare) and self._reads_threshold(node)

    def _reads_threshold(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.Name) and n.id in self.thresholds for n in ast.walk(node))


def _includes(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def is_setting(name: str) -> bool:
    """Return True if host code gives this name to a choice for speed."""
    return name in SETTING_WORDS or SETTING.fullmatch(name) is not None


def called(node: ast.AST) -> str:
    """Return the last part of the name that a call calls, such as `load` for `tl.load(...)`, or ''."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_ignored(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.FunctionDef | ast.Lambda):
        return True
    if isinstance(node, ast.If) and all(isinstance(n, ast.Raise) for n in node.body) and not node.orelse:
        return True  # a check of the arguments, which the judge counts as a call that is not served
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.keyword):
        return node.arg in IGNORED_KEYWORDS
    return called(node) in IGNORED_CALLS


def own_text(text: str) -> str:
    """Return the part of a linked text that its author wrote, without the blocks."""
    end = re.search(r"(?m)^# blocks/\w+\.py:\d+$", text)
    return text[: end.start()] if end else text


def linked(path: Path) -> str:
    """Return the text of a kernel file with its blocks, as the judge reads it."""
    return link(path.read_text(encoding="utf-8"), (BLOCKS,))


def kernel_files() -> list[Path]:
    """Return all kernel files of the library, in order."""
    return sorted(KERNELS.rglob("*.py"))
