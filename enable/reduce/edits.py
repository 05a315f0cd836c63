"""Propose smaller versions of a Python program, as edits of its syntax tree.

`reduction.py` tries each proposal. An edit only has to be syntactically valid; the trial decides if it is kept.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from verify import syntax

Edit: TypeAlias = Callable[[ast.Module], None]  # modifies a copy of the tree

_BUILTINS = frozenset(dir(builtins))
_STATEMENTS = ("body", "orelse", "finalbody", "decorator_list")
_CONTRACT = {"OVERLOADS", "DTYPES", "LAYOUTS", "__all__"}
PROVIDED = "import math\nimport torch\nimport triton\nimport triton.language as tl"  # each trial begins with these


def prepared(source: str) -> ast.Module:
    """Return the tree of a linked kernel file without comments, docstrings and the constants of the contract."""
    tree = copy.deepcopy(syntax.parse(source))
    provided = set(PROVIDED.split("\n"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            node.body = [s for s in node.body if not _is_docstring(s)] or [ast.Pass()]
    tree.body = [s for s in tree.body if _assigned(s) not in _CONTRACT and ast.unparse(s) not in provided]
    return tree


def applied(tree: ast.Module, edit: Edit) -> ast.Module | None:
    """Return an edited copy of the tree, or None if the program reads a name that nothing binds any more."""
    copied = copy.deepcopy(tree)
    edit(copied)
    return None if unbound(copied) - unbound(tree) else copied


def unbound(tree: ast.Module) -> set[str]:
    """Return the names that the program reads and never binds."""
    nodes = syntax.walk(tree)
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    aliases = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    bound |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
    return {node.id for node in names} - bound - _BUILTINS - {"math", "torch", "triton", "tl"}


def chunks(tree: ast.Module) -> Iterator[tuple[int, Edit]]:
    """Yield edits that delete statements or decorators: long runs first, and the last ones of each list first.

    Each edit comes with its size, because a shorter run is only worth a try if no longer one can be deleted.
    """
    lists = [(at, name, len(items)) for at, name, items in _lists(tree)]
    size = max((count for _, _, count in lists), default=0)
    while size:
        for at, name, count in lists:
            for end in range(count, 0, -size) if count >= size else ():
                yield size, _deletion(at, name, max(0, end - size), end)
        size //= 2


def bodies(tree: ast.Module) -> Iterator[Edit]:
    """Yield edits that replace an `if` or a loop by one of its bodies."""
    for at, name, items in _lists(tree):
        for i, statement in enumerate(items):
            if isinstance(statement, ast.If | ast.For | ast.While | ast.With):
                parts = ["body", "orelse"] if getattr(statement, "orelse", None) else ["body"]
                yield from (_unwrapping(at, name, i, part) for part in parts)


def parameters(tree: ast.Module) -> Iterator[Edit]:
    """Yield edits that remove a function's parameter together with its arguments.

    If all calls pass the same literal, it takes the parameter's place in the function.
    """
    for function in [n for n in tree.body if isinstance(n, ast.FunctionDef)]:
        for i in reversed(range(len(function.args.args))):
            yield _without_parameter(function.name, i)


def arguments(tree: ast.Module) -> Iterator[Edit]:
    """Yield edits that remove arguments of calls, such as masks and the number of warps."""
    for at, node in enumerate(syntax.walk(tree)):
        if isinstance(node, ast.Call):
            yield from (_removal(at, "keywords", i) for i in reversed(range(len(node.keywords))))
            yield from (_removal(at, "args", i) for i in reversed(range(1, len(node.args))))


def expressions(tree: ast.Module) -> Iterator[Edit]:
    """Yield edits that replace an expression by one of its parts or by a constant, outermost expressions first."""
    for at, node in enumerate(syntax.walk(tree)):
        if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store):
            continue
        if isinstance(node, ast.Constant):
            yield from (_replacement(at, ast.Constant(value)) for value in _smaller(node.value))
        elif not isinstance(node, ast.Name | ast.Attribute | ast.Slice | ast.Starred | ast.Tuple | ast.List):
            yield from (_replacement(at, part) for part in _parts(node))
            yield from (_replacement(at, ast.Constant(value)) for value in (0, 1.0))
        elif isinstance(node, ast.Name) and not node.id[0].isupper():
            yield _replacement(at, ast.Constant(0))


def substitutions(tree: ast.Module) -> Iterator[Edit]:
    """Yield edits that write the value of a variable in place of its only use."""
    for at, name, items in _lists(tree):
        for i, statement in enumerate(items):
            if isinstance(statement, ast.Assign) and _assigned(statement):
                yield _substitution(at, name, i)


def _lists(tree: ast.Module) -> Iterator[tuple[int, str, list[Any]]]:
    """Yield each list of statements or decorators: its owner's position in the tree, its field, and its items."""
    for at, node in enumerate(syntax.walk(tree)):
        for name in _STATEMENTS:
            items = getattr(node, name, None)
            if isinstance(items, list) and items and not all(isinstance(item, ast.Pass) for item in items):
                yield at, name, items


def _deletion(at: int, name: str, start: int, end: int) -> Edit:
    def edit(tree: ast.Module) -> None:
        owner = syntax.walk(tree)[at]
        items = getattr(owner, name)
        del items[start:end]
        if not items and name == "body" and not isinstance(owner, ast.Module):
            items.append(ast.Pass())

    return edit


def _unwrapping(at: int, name: str, i: int, part: str) -> Edit:
    def edit(tree: ast.Module) -> None:
        items = getattr(syntax.walk(tree)[at], name)
        statement = items[i]
        before: list[ast.stmt] = []
        if isinstance(statement, ast.For) and part == "body":
            start = ast.Constant(0)
            before = [ast.Assign([statement.target], start, lineno=statement.lineno)]
        items[i : i + 1] = [*before, *getattr(statement, part)]

    return edit


def _without_parameter(function: str, i: int) -> Edit:
    def edit(tree: ast.Module) -> None:
        nodes = syntax.walk(tree)
        defined = next(n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == function)
        arguments = defined.args
        first_default = len(arguments.args) - len(arguments.defaults)
        if i >= first_default:
            del arguments.defaults[i - first_default]
        name = arguments.args.pop(i).arg
        passed = []
        for node in nodes:
            if isinstance(node, ast.Call) and _called(node) == function:
                passed += [k.value for k in node.keywords if k.arg == name] + node.args[i : i + 1]
                node.keywords = [k for k in node.keywords if k.arg != name]
                del node.args[i : i + 1]
        if len({ast.dump(value) for value in passed}) == 1 and isinstance(passed[0], ast.Constant):
            uses = [n for n in syntax.walk(defined) if isinstance(n, ast.Name) and n.id == name]
            if all(isinstance(use.ctx, ast.Load) for use in uses):
                _Replaced({id(use): passed[0] for use in uses}).visit(defined)

    return edit


def _removal(at: int, name: str, i: int) -> Edit:
    def edit(tree: ast.Module) -> None:
        del getattr(syntax.walk(tree)[at], name)[i]

    return edit


def _replacement(at: int, value: ast.expr) -> Edit:
    def edit(tree: ast.Module) -> None:
        _Replaced({id(syntax.walk(tree)[at]): copy.deepcopy(value)}).visit(tree)

    return edit


def _substitution(at: int, name: str, i: int) -> Edit:
    def edit(tree: ast.Module) -> None:
        items = getattr(syntax.walk(tree)[at], name)
        statement = items[i]
        variable = _assigned(statement)
        later = [n for s in items[i + 1 :] for n in syntax.walk(s) if isinstance(n, ast.Name) and n.id == variable]
        if len(later) == 1 and isinstance(later[0].ctx, ast.Load):
            _Replaced({id(later[0]): statement.value}).visit(tree)
            items.remove(statement)

    return edit


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions that can stand in place of a larger one."""
    if isinstance(node, ast.Call):
        yield from node.args
    elif isinstance(node, ast.Subscript):
        yield node.value
    else:
        yield from (part for part in syntax.children(node) if isinstance(part, ast.expr))


def _smaller(value: Any) -> list[Any]:
    """Return smaller constants of the same kind, the smallest first."""
    if value is True:
        return [False]
    if type(value) is int and value > 1:
        return [n for n in (0, 1, 2, 4, 8, 16, 32, 64) if n < value]
    if type(value) is float and value not in (0.0, 1.0):
        return [0.0, 1.0]
    return [0] if type(value) is int and value == 1 else []


def _called(node: ast.Call) -> str:
    """Return the name of the function that is called or launched."""
    function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
    return function.id if isinstance(function, ast.Name) else ""


def _assigned(statement: ast.stmt) -> str:
    """Return the name to which a statement assigns, or ''."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return getattr(statement.targets[0], "id", "")
    return ""


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)


class _Replaced(ast.NodeTransformer):
    """Replaces nodes by id."""

    def __init__(self, values: dict[int, ast.expr]) -> None:
        self._values = values

    def visit(self, node: ast.AST) -> Any:
        return copy.deepcopy(self._values[id(node)]) if id(node) in self._values else super().visit(node)
