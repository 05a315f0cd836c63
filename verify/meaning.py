"""Write the meaning of a program as text; two programs with equal texts compile to the same code.

The text omits comments, docstrings, positions, `pass`, unused definitions, function order, and most local
variable names. It includes everything else, such as annotations, defaults, decorators and statement order,
because Triton reads them.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from verify import syntax

_ROOTS = ("OVERLOADS", "DTYPES", "LAYOUTS", "wrapper")  # names that other modules look up in a kernel file
_SCOPES = {
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
}
_BINDING = {
    *(ast.arg, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.ExceptHandler),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match),
}
_LOOKS_AT_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
_IGNORED = frozenset({"ctx", "type_comment", "kind"})
_BODIES = frozenset({"body", "orelse", "finalbody"})


def digest(parts: Iterable[str]) -> str:
    """Return the SHA-256 of `parts` in hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def meaning_of(node: ast.Module | ast.stmt) -> str:
    """Return the meaning of a module, or of one statement, as text."""
    out: list[str] = []
    _write(node, out)
    return "\0".join(out)


def names_read(node: ast.AST) -> frozenset[str]:
    """Return the names that a syntax tree reads."""
    return frozenset(n.id for n in syntax.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def parts_of(tree: ast.Module, beyond: Callable[[set[str]], Iterable[str]]) -> list[str]:
    """Return the meanings of the statements that a kernel file needs.

    A definition is a function, a class, an import, or an assignment without calls. A definition is omitted if it
    is not reachable from `wrapper`, from the declarations in `_ROOTS`, or from other statements. Function order
    is ignored, unless a name is bound twice. For all other statements, the order is significant.

    Args:
        tree: Syntax tree for the kernel file.
        beyond: Function from the needed names to the names that the linked blocks read.
    """
    definitions: dict[str, list[ast.stmt]] = {}
    needed, bound, effects = set(_ROOTS), Counter[str](), set[ast.stmt]()
    for node in tree.body:
        names = defined(node)
        for name in names:
            definitions.setdefault(name, []).append(node)
        if not names and not _says_nothing(node) and not imports_blocks(node):
            effects.add(node)
            needed |= names_read(node)
            names = [n.id for n in syntax.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
        bound.update(names)
    reached: set[str] = set()
    while new := (needed & definitions.keys()) - reached:
        reached |= new
        needed = needed.union(*(names_read(node) for name in new for node in definitions[name]))
        needed = needed.union(beyond(needed))
    used = effects.union(*(definitions[name] for name in reached))
    statements = [node for node in tree.body if node in used]
    if max(bound.values(), default=0) < 2:  # sorted() is stable, so statements without a name stay in order
        statements = sorted(statements, key=lambda node: node.name if isinstance(node, ast.FunctionDef) else "")
    return [meaning_of(node) for node in statements]


def imports_blocks(node: ast.AST) -> bool:
    """Return True for `from blocks.MODULE import NAME`."""
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "blocks" and not node.level


def defined(node: ast.stmt) -> list[str]:
    """Return the names that a module-level statement defines, or none if it may have other effects."""
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
    """Return True for a docstring, another string statement, or `pass`."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, ast.Pass)


class _Locals:
    """Local names in a function body: their positions in the text, their bindings, and those that are not renamed.

    A variable is not renamed if it is bound otherwise than by assignment, `for` or `with`, or in a nested scope
    too. Its name may then mean two things.

    Attributes:
        places: Positions at which names are in the text.
        bound: Names that the function binds, in order.
        kept: Names that are not renamed.
        branches: True if variables bound inside an `if` are not renamed.
    """

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.places, self.bound, self.kept = list[int](), dict[str, None](), set[str]()
        self.branches = bool(function.decorator_list)
        self.kept.update(node.arg for node in syntax.walk(function.args) if isinstance(node, ast.arg))

    def rename(self, out: list[str]) -> None:
        """Replace variable names in a text by numbers, in binding order."""
        if "*" in self.kept:
            return
        new = {name: f"${number}" for number, name in enumerate(n for n in self.bound if n not in self.kept)}
        for position in self.places:
            out[position] = new.get(out[position], out[position])


def _write(node: ast.AST, out: list[str], local: _Locals | None = None, shared: bool = False) -> None:
    """Append a node to the text `out`; nodes and lists have end marks, so that the text is unambiguous.

    In a decorated function, which Triton compiles, variables bound inside an `if` are not renamed. Triton's code
    generator orders the results of a branch by name (`visit_If`).

    Args:
        node: Syntax tree to write.
        out: Text so far.
        local: Names in the enclosing function.
        shared: True inside a nested scope, or inside an `if` whose variables are not renamed.
    """
    kind = type(node)
    if kind is ast.Constant:
        out += ("Constant", repr(node.value))  # type: ignore[attr-defined]
        return
    if kind is ast.Name:
        _write_name(node, out, local, shared)  # type: ignore[arg-type]
        return
    own_locals = None
    if local is not None:
        shared = shared or kind in _SCOPES or (local.branches and kind is ast.If)
        if kind in _BINDING:
            local.kept.update(_bound_otherwise(node))
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        own_locals = _Locals(node)
    out.append(kind.__name__)
    for field in _fields(kind):  # type: ignore[arg-type]
        value = getattr(node, field, None)
        inside = own_locals if field == "body" and own_locals is not None else local
        if isinstance(value, list):
            if value:
                out.append(field)
                statements = field in _BODIES
                for item in value:
                    if not isinstance(item, ast.AST):
                        out.append(repr(item))
                    elif not (statements and _says_nothing(item)):
                        _write(item, out, inside, shared)
                out.append("]")
        elif isinstance(value, ast.AST):
            out.append(field)
            _write(value, out, inside, shared)
        elif value is not None:
            out += (field, repr(value))
    out.append(")")
    if own_locals is not None:
        own_locals.rename(out)


def _write_name(node: ast.Name, out: list[str], local: _Locals | None, shared: bool) -> None:
    out += ("Name", node.id)
    if local is None:
        return
    local.places.append(len(out) - 1)
    if type(node.ctx) is not ast.Load:
        local.bound.setdefault(node.id)
        if shared:
            local.kept.add(node.id)
    elif node.id in _LOOKS_AT_NAMES:
        local.kept.add("*")


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field for field in kind._fields if field not in _IGNORED)


def _bound_otherwise(node: ast.AST) -> list[str]:
    """Return the names that a node binds or declares other than by assignment; `*` if no name may be renamed."""
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ExceptHandler):
        return [node.name] if node.name else []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    return ["*"]  # a class definition or match patterns
