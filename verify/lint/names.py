"""Shared parts of the lint: violations, their collection, and dotted names behind expressions."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from typing import TypeAlias

from verify.lint.profile import DEFAULT, LAYOUTS, Profile, load_profile
from verify.syntax import walk

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

RULES = frozenset(
    {
        *("size", "encoding", "syntax", "depth", "answer-format", "blocks"),
        *("docstring", "overloads", "dtypes", "layouts", "import", "module-state", "redefinition", "shadowing"),
        *("wrapper", "wrapper-signature", "no-kernel", "decorator", "annotation", "default-argument", "construct"),
        *("name", "scope", "module-value", "function-value", "attribute", "builtin", "unknown-name", "call"),
        *("tensor-operator", "tensor-indexing", "tensor-builtin", "lambda", "launch", "launch-argument", "assignment"),
        *("kernel-global", "argument", "readback", "endless-loop", "unroll", "introspection"),
        "library-call",
        *("scatter-store", "half-maths", "alignment"),
    }
)

WORK = 300_000  # steps; our own files need 500 to 5,000
_WORK_OF_A_VIOLATION = 200  # its text needs part of the tree, or a search for similar names
_LONGEST = 300  # characters in a violation's message
_PARTS = 100  # nodes in a tree that is still printed in full
_LONGEST_NAME = 40  # characters in a name that is checked for misspelling
_LONGEST_ALIAS = 500  # characters in a dotted name
ATEN = "torch.ops.aten."
JITS = frozenset({"triton.jit", "gluon.jit"})  # decorators that make a function a kernel
LANGUAGES = {  # module -> its name in reports, regardless of the file's alias; longer ones first
    "triton.language": "tl",
    "triton.experimental.gluon.language.nvidia.hopper": "hopper",
    "triton.experimental.gluon.language": "gl",
    "triton.experimental.gluon": "gluon",
}
_IN_KERNELS = frozenset({"tl", "gl", "hopper"})  # the modules above that host code does not use


@dataclass(frozen=True, order=True)
class Violation:
    """One broken rule.

    Attributes:
        line: 1-based line number, or 0 for the whole file.
        rule: Name of the rule.
        problem: Description of the problem.
        instead: Suggested replacement.
        named: The refused name, such as `tl.wheree` or `.sum`, if the violation is about one.
        linked_line: Line number in the text with its blocks, where `line` is 0 for a line of a block.
    """

    line: int
    rule: str
    problem: str
    instead: str
    named: str = ""
    linked_line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        return f"[{self.rule}] {self.problem}{line} instead: {self.instead}"


class TooMuchWork(Exception):
    """Raised if an analysis takes longer than any kernel file justifies."""


@dataclass
class Findings:
    """Collector for violations, without duplicates, that also limits the work to find them.

    `left` is the number of remaining steps, about 1 us each.
    """

    violations: set[Violation] = field(default_factory=set)
    left: int = WORK

    def add(self, rule: str, at: ast.AST | int, problem: str, instead: str, named: str = "") -> None:
        assert rule in RULES, rule
        line = at if isinstance(at, int) else getattr(at, "lineno", 0)
        self.violations.add(Violation(line, rule, _plain(problem, _LONGEST), _plain(instead, 10 * _LONGEST), named))
        self.work(_WORK_OF_A_VIOLATION)

    def work(self, steps: int = 1) -> None:
        """Count work. Call this wherever the work may grow faster than the text.

        Raises:
            TooMuchWork: The limit is exceeded.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork

    def sorted(self) -> list[Violation]:
        return sorted(self.violations)


@dataclass(frozen=True)
class Names:
    """Meaning of the names that a file uses.

    Attributes:
        modules: Local name -> dotted name, from imports and plain assignments (`f = torch.nn.functional`). The
            language module is always called `tl`, regardless of the file's alias.
        foreign: Local names for modules that kernel files may not import.
        kernels: Kernels by name.
        helpers: Other functions by name.
        constants: Module-level names; True if the value is `tl.constexpr(...)`, so that a kernel may read it.
        assigned: Every value that `name = ...` assigns, in any scope, for names that are bound in no other way
            except as a lambda's parameter.
    """

    modules: dict[str, str]
    foreign: frozenset[str]
    kernels: dict[str, ast.FunctionDef]
    helpers: dict[str, ast.FunctionDef]
    constants: dict[str, bool]  # True: made by tl.constexpr(...), so a kernel may read it
    assigned: dict[str, list[ast.expr]]

    def dotted(self, node: ast.AST) -> str | None:
        """Return `torch.nn.functional.gelu` for an attribute chain that begins at a module, else None."""
        return dotted_name(node, self.modules)

    def is_module_level(self, name: str) -> bool:
        return name in self.modules or name in self.kernels or name in self.helpers

    def is_foreign(self, node: ast.AST) -> bool:
        """Return True if a name or attribute chain begins at a module that kernel files may not import."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.foreign


def dotted_name(node: ast.AST, modules: dict[str, str]) -> str | None:
    """Return the dotted name; see Names.dotted."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules:
        return None
    return canonical(".".join([modules[node.id], *reversed(parts)]))


def operator_of(dotted: str) -> str | None:
    """Return `aten::sum.dim_IntList` for `torch.ops.aten.sum.dim_IntList`, or None for other names."""
    parts = dotted.removeprefix(ATEN).split(".")
    if not dotted.startswith(ATEN) or len(parts) != 2:  # noqa: PLR2004 - name and overload
        return None
    return f"aten::{parts[0]}" if parts[1] == "default" else f"aten::{parts[0]}.{parts[1]}"


def call_of(overload: str) -> str:
    """Return the call that a wrapper makes for an overload: `torch.ops.aten.exp.default(...)`."""
    name, _, overload_name = overload.removeprefix("aten::").partition(".")
    return f"{ATEN}{name}.{overload_name or 'default'}(...)"


def called_operators(tree: ast.Module) -> tuple[str, ...]:
    """Return the overloads that a file calls as `torch.ops.aten.NAME.OVERLOAD(...)`, sorted without duplicates."""
    called = (dotted_name(n.func, {"torch": "torch"}) for n in walk(tree) if isinstance(n, ast.Call))
    return tuple(sorted({o for o in (operator_of(d) for d in called if d is not None) if o is not None}))


def canonical(dotted: str) -> str:
    """Return a dotted name with canonical module names: `tl` for the language, and one device library."""
    for module, name in LANGUAGES.items():
        if dotted == module or dotted.startswith(module + "."):
            dotted = name + dotted[len(module) :]
    return dotted.replace("tl.extra.cuda.libdevice", "tl.extra.libdevice", 1)


def collect_names(tree: ast.Module, profile: Profile) -> Names:
    """Find every module alias, and the names that the module defines.

    A bare file has the profile's usual imports without writing them.
    """
    modules = {alias: canonical(m) for alias, m in profile.usual_imports.items()} if profile.bare else {}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                modules[a.asname or a.name.partition(".")[0]] = canonical(a.name if a.asname else a.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for a in node.names:
                modules[a.asname or a.name] = canonical(f"{node.module}.{a.name}")
    assigned = [n for n in walk(tree) if isinstance(n, ast.Assign)]
    for node in assigned:
        dotted = dotted_name(node.value, modules)
        if (
            dotted is not None
            and len(dotted) < _LONGEST_ALIAS
            and dotted not in profile.host.values
            and dotted not in profile.kernel.names
        ):
            modules.update({t.id: dotted for t in node.targets if isinstance(t, ast.Name)})
    known = {canonical(m).partition(".")[0] for m in (*profile.imports.values(), *profile.importable)}
    foreign = frozenset(name for name, dotted in modules.items() if dotted.partition(".")[0] not in known)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    kernels = {f.name: f for f in functions if is_kernel(f, modules)}
    helpers = {f.name: f for f in functions if f.name not in kernels}
    return Names(modules, foreign, kernels, helpers, _constants(tree, modules), _assigned(tree, assigned))


def _assigned(tree: ast.Module, statements: list[ast.Assign]) -> dict[str, list[ast.expr]]:
    values: dict[str, list[ast.expr]] = {}
    for node in statements:
        for target in node.targets:
            if isinstance(target, ast.Name):
                values.setdefault(target.id, []).append(node.value)
    bound = Counter(n.id for n in walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    functions = [n for n in walk(tree) if isinstance(n, ast.FunctionDef)]
    bound.update(p.arg for f in functions for p in parameters(f))
    return {name: expressions for name, expressions in values.items() if bound[name] == len(expressions)}


def _constants(tree: ast.Module, modules: dict[str, str]) -> dict[str, bool]:
    constants: dict[str, bool] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target, value in [p for t in targets for p in pairs(t, getattr(node, "value", None))]:
            is_constexpr = isinstance(value, ast.Call) and dotted_name(value.func, modules) == "tl.constexpr"
            if isinstance(target, ast.Name) and target.id not in modules:
                constants[target.id] = is_constexpr
    return constants


def pairs(target: ast.expr | None, value: ast.expr | None) -> list[tuple[ast.expr | None, ast.expr | None]]:
    """Return (target, value) pairs for an assignment; two pairs for `a, b = 1, 2`."""
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    if both and len(target.elts) == len(value.elts):  # type: ignore[union-attr]
        return list(zip(target.elts, value.elts, strict=True))  # type: ignore[union-attr]
    return [(target, value)]


def check_end(loop: ast.While, findings: Findings) -> None:
    """Report a loop whose test is always true and whose body never leaves it."""
    always = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    if always and not any(isinstance(n, ast.Break | ast.Return | ast.Raise) for n in walk(loop)):
        hint = "let the test of the loop fail at the end"
        findings.add("endless-loop", loop, "a loop that never ends", hint)


def is_kernel(function: Function, modules: dict[str, str]) -> bool:
    """Return True if any decorator is `triton.jit` or `gluon.jit`, called or not."""
    decorators = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return any(dotted_name(d, modules) in JITS for d in decorators)


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """Return every parameter in order, including `*args` and `**kwargs`."""
    a = function.args
    extra = [x for x in (a.vararg, a.kwarg) if x is not None]
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *extra]


def shown(node: ast.AST, parts: int = _PARTS) -> str:
    """Return the first line of the node's source text, or only its type if it has more than `parts` nodes."""
    if next(islice(ast.walk(node), parts, None), None) is None:
        try:
            return ast.unparse(node).split("\n", 1)[0]
        except ValueError:  # a text in an f-string that would need a backslash
            pass
    return f"a long {type(node).__name__}"


def declared_layouts(tree: ast.Module) -> tuple[str, ...] | None:
    """Return the layouts that a file declares; empty if that is not a literal, None if it declares none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [LAYOUTS]:
            return literal_strings(node.value) or ()
    return None


def literal_strings(node: ast.expr) -> tuple[str, ...] | None:
    """Return the value of `("a", "b")`; None for anything but a literal tuple with at least one plain string."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, OverflowError):
        return None
    plain = isinstance(value, tuple) and value and all(isinstance(v, str) and v.isascii() for v in value)
    return value if plain else None


def no_wrapper(tree: ast.Module) -> tuple[int, str, str]:
    """Return (line, problem, suggestion) for a module without a function named wrapper."""
    instead = "define wrapper(<the schema's arguments>) at module level, which allocates and launches"
    for node in walk(tree):
        name, line = getattr(node, "name", ""), getattr(node, "lineno", 0)
        if name == "wrapper" and isinstance(node, ast.AsyncFunctionDef):
            return line, "wrapper is an `async def`, which returns before it has run", "write plain `def wrapper(...)`"
        if name == "wrapper" and isinstance(node, ast.FunctionDef):
            holder = next(type(s).__name__ for s in tree.body if s.lineno <= line <= (s.end_lineno or 0))
            problem = f"wrapper is defined inside a module-level {holder}, where it may be missing"
            return line, problem, "define it at module level, without indentation; decide inside it what depends"
        if name == "wrapper" and isinstance(node, ast.ClassDef):
            return line, "wrapper is a class", "write `def wrapper(...)`, which calls no class"
        if isinstance(node, ast.Name) and node.id == "wrapper" and isinstance(node.ctx, ast.Store):
            return line, "wrapper is assigned, not defined", "write `def wrapper(...)`"
    return 0, "no function named wrapper at module level", instead


def _plain(text: str, longest: int) -> str:
    """Return a printable text, truncated to `longest` characters."""
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= longest else text[: longest - 3] + "..."


def similar(name: str, choices: frozenset[str] | set[str]) -> str:
    """Return `did you mean ...?` for a misspelt name in the same module, or ''."""
    module, _, last = name.rpartition(".")
    if len(last) > _LONGEST_NAME:
        return ""
    near = [c for c in sorted(choices) if abs(len(c) - len(name)) <= 3 and c.rpartition(".")[0] == module]  # noqa: PLR2004
    lasts = {c.rpartition(".")[2]: c for c in near[:_PARTS]}
    close = [lasts[match] for match in get_close_matches(last, lasts, n=3, cutoff=0.75)]
    return f"did you mean {' or '.join(close)}?" if close else ""


def refused_name(dotted: str, inside_kernel: bool, profile: Profile) -> tuple[str, str, str]:
    """Return (rule, problem, suggestion) for a dotted name that is not allowed in this scope."""
    module = dotted.partition(".")[0]
    if inside_kernel and module not in _IN_KERNELS:
        hint = profile.hints.get(dotted, "") if module == "triton" else ""
        default = "use the tl function, or pass the value as an argument; a kernel's body knows only tl"
        return "scope", f"{dotted} inside a @triton.jit function", hint or default
    if not inside_kernel and module in _IN_KERNELS:
        default = "move the computation into a @triton.jit function; choose between dtypes there by a tl.constexpr flag"
        return "scope", f"{dotted} outside a @triton.jit function", default
    if inside_kernel:
        default = "use one of the allowed tl functions"
        return "name", f"{dotted} is not in the dialect", _advice(dotted, profile, profile.kernel.names, default)
    allowed = profile.host.functions.keys() | profile.host.values
    tl_name = f"tl.{dotted.rpartition('.')[2]}"
    default = "compute it in a @triton.jit kernel; the wrapper only allocates, makes views and launches"
    if tl_name in profile.kernel.names:
        default = f"compute it in a @triton.jit kernel, with {tl_name}"
    return "name", f"{dotted} is not allowed in host code", _advice(dotted, profile, allowed, default)


def _advice(dotted: str, profile: Profile, choices: set[str] | frozenset[str], default: str) -> str:
    if hint := profile.instead(dotted):
        return hint
    if dotted in load_profile(DEFAULT).kernel.names:  # a platform lacks it, so it is not misspelt
        return "write it with functions that the platform has"
    return similar(dotted, choices) or default
