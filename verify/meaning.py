"""What a program means, as text that is equal for two programs only if they compile to the same ones.

Comments, docstrings, positions, `pass`, definitions that nothing uses, the order of definitions and the names of most
local variables are left out. All else is kept, annotations, defaults, decorators and the order of statements included:
Triton reads them.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from verify import syntax

_ROOTS = ("OVERLOADS", "DTYPES", "LAYOUTS", "wrapper")  # what a kernel file is read for
_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_LOOKS_AT_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
_IGNORED = frozenset({"ctx", "type_comment", "kind"})
_BODIES = frozenset({"body", "orelse", "finalbody"})


def digest(parts: Iterable[str]) -> str:
    """Return the SHA-256 of texts, in hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def meaning_of(node: ast.Module | ast.stmt) -> str:
    """Return the meaning of a module or of one of its statements, as text."""
    out: list[str] = []
    _write(node, {}, out)
    return "\0".join(out)


def names_read(node: ast.AST) -> frozenset[str]:
    """Return the names that a piece of a program reads."""
    return frozenset(n.id for n in syntax.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def parts_of(tree: ast.Module, beyond: Callable[[set[str]], Iterable[str]]) -> list[str]:
    """Return the meaning of what a kernel file needs of its own.

    A definition is a function, a class, an import, or an assignment that calls nothing. Those that are reached neither
    from `wrapper`, nor from the lists of what it serves, nor from other statements are left out. The order of
    definitions says nothing, but for those of one name. beyond: names that blocks read, if these names are needed.
    """
    definitions: dict[str, list[ast.stmt]] = {}
    needed, parts = set(_ROOTS), list[str]()
    for node in tree.body:
        names = defined(node)
        for name in names:
            definitions.setdefault(name, []).append(node)
        if not names and not _says_nothing(node) and not imports_blocks(node):
            parts.append(meaning_of(node))
            needed |= names_read(node)
    reached: set[str] = set()
    while new := (needed & definitions.keys()) - reached:
        reached |= new
        needed = needed.union(*(names_read(node) for name in new for node in definitions[name]))
        needed = needed.union(beyond(needed))
    return parts + [f"{name}\0{meaning_of(node)}" for name in sorted(reached) for node in definitions[name]]


def imports_blocks(node: ast.AST) -> bool:
    """Return True for `from blocks.MODULE import NAME`."""
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "blocks" and not node.level


def defined(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines; none if it may do something else, too."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not imports_blocks(node) and node.names[0].name != "*":
        return [alias.asname or alias.name for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if not names or len(names) < len(targets) or any(isinstance(n, ast.Call) for n in syntax.walk(node)):
        return []
    return names


def _says_nothing(node: ast.AST) -> bool:
    """Return True for a docstring, another string that stands alone, and `pass`."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Pass)


def _write(node: ast.AST, renamed: Mapping[str, str], out: list[str]) -> None:
    """Append a node to a text that can be read in one way only: each node and each list has an end."""
    kind = type(node)
    if kind is ast.Name:
        name: str = node.id  # type: ignore[attr-defined]
        out += ("Name", renamed.get(name, name))
        return
    if kind is ast.Constant:
        out += ("Constant", repr(node.value))  # type: ignore[attr-defined]
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not renamed:
        renamed = _canonical_names(node)
    out.append(kind.__name__)
    for field in _fields(kind):  # type: ignore[arg-type]
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            out.append(field)
            _write(value, renamed, out)
        elif isinstance(value, list):
            if value:
                out.append(field)
                statements = field in _BODIES
                for item in value:
                    if not isinstance(item, ast.AST):
                        out.append(repr(item))
                    elif not (statements and _says_nothing(item)):
                        _write(item, renamed, out)
                out.append("]")
        elif value is not None:
            out += (field, repr(value))
    out.append(")")


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field for field in kind._fields if field not in _IGNORED)


def _canonical_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Return new names for the local variables of a function, in the order in which they are bound.

    A variable keeps its name if it is bound in another way than by assignment, `for` or `with`, or in a nested scope as
    well, since then the same name means two things. In a decorated function, which Triton compiles, it keeps it too if
    an `if` assigns it: the results of a branch are in the order of their names (Triton's code generator, `visit_If`).
    """
    bound, kept = dict[str, None](), set[str]()
    branches = (ast.If,) if function.decorator_list else ()

    def look(node: ast.AST, nested: bool, branch: bool) -> None:
        if isinstance(node, ast.Name):
            if node.id in _LOOKS_AT_NAMES:
                kept.add("*")
            if not isinstance(node.ctx, ast.Load):
                bound.setdefault(node.id)
                if nested or branch:
                    kept.add(node.id)
            return
        if isinstance(node, ast.arg):
            kept.add(node.arg)
        elif isinstance(node, ast.stmt | ast.excepthandler):
            kept.update(_bound_otherwise(node))
        nested = nested or (node is not function and isinstance(node, _SCOPES))
        branch = branch or isinstance(node, branches)
        for child in syntax.children(node):
            look(child, nested, branch)

    look(function, False, False)
    if "*" in kept:
        return {}
    return {name: f"${number}" for number, name in enumerate(n for n in bound if n not in kept)}


def _bound_otherwise(node: ast.stmt | ast.excepthandler) -> list[str]:
    """Return the names that a statement binds or declares, but for assigned ones; `*` if all names have to stay."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ExceptHandler):
        return [node.name] if node.name else []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    return ["*"] if isinstance(node, ast.Match | ast.ClassDef) else []
