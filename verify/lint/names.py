"""What the parts of the lint share: violations, their collection, and the full dotted name behind an expression."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeAlias

from verify.lint.profile import Profile

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

RULES = frozenset(
    {
        *("size", "encoding", "syntax", "depth", "answer-format"),
        *("docstring", "overloads", "dtypes", "import", "module-state", "redefinition", "shadowing"),
        *("wrapper", "wrapper-signature", "no-kernel", "decorator", "annotation", "default-argument", "construct"),
        *("name", "scope", "module-value", "function-value", "attribute", "builtin", "unknown-name", "call"),
        *("tensor-operator", "tensor-indexing", "tensor-builtin", "lambda", "launch", "launch-argument", "assignment"),
        *("kernel-global", "argument", "readback", "endless-loop", "unroll"),
        *("scatter-store", "half-maths", "alignment"),
    }
)


@dataclass(frozen=True, order=True)
class Violation:
    """One broken rule. line: 1-based, 0 for the whole file. instead: what to write."""

    line: int
    rule: str
    what: str
    instead: str

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"[{self.rule}] {self.what}{where} instead: {self.instead}"


@dataclass
class Findings:
    """Collects violations, each once."""

    found: set[Violation] = field(default_factory=set)

    def add(self, rule: str, at: ast.AST | int, what: str, instead: str) -> None:
        assert rule in RULES, rule
        line = at if isinstance(at, int) else getattr(at, "lineno", 0)
        self.found.add(Violation(line, rule, what, instead))

    def sorted(self) -> list[Violation]:
        return sorted(self.found)


@dataclass(frozen=True)
class Names:
    """What the file's own names stand for.

    modules: local name -> dotted name, from imports and plain assignments (`f = torch.nn.functional`). The language
    module is always written `tl`, whatever the file calls it.
    """

    modules: dict[str, str]
    foreign: frozenset[str]
    kernels: dict[str, ast.FunctionDef]
    helpers: dict[str, ast.FunctionDef]
    constants: dict[str, bool]  # True: made by tl.constexpr(...), so a kernel may read it

    def dotted(self, node: ast.AST) -> str | None:
        """`torch.nn.functional.gelu` for an attribute chain that begins at a module, else None."""
        return dotted_name(node, self.modules)

    def is_module_level(self, name: str) -> bool:
        return name in self.modules or name in self.kernels or name in self.helpers


def dotted_name(node: ast.AST, modules: dict[str, str]) -> str | None:
    """See Names.dotted."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules:
        return None
    return _canonical(".".join([modules[node.id], *reversed(parts)]))


def _canonical(dotted: str) -> str:
    prefix = "triton.language"
    if dotted == prefix or dotted.startswith(prefix + "."):
        return "tl" + dotted[len(prefix) :]
    return dotted


def collect_names(tree: ast.Module, profile: Profile) -> Names:
    """Find every alias of a module wherever it is made, and what the module defines.

    A bare file has the profile's imports without writing them.
    """
    modules = {alias: _canonical(m) for alias, m in profile.imports.items()} if profile.bare else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                modules[a.asname or a.name.partition(".")[0]] = _canonical(a.name if a.asname else a.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for a in node.names:
                modules[a.asname or a.name] = _canonical(f"{node.module}.{a.name}")
    assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Assign)]
    for node in assigned:
        dotted = dotted_name(node.value, modules)
        if dotted is not None and dotted not in profile.host.values and dotted not in profile.kernel.names:
            modules.update({t.id: dotted for t in node.targets if isinstance(t, ast.Name)})
    known = {_canonical(m).partition(".")[0] for m in (*profile.imports.values(), *profile.importable)}
    foreign = frozenset(name for name, dotted in modules.items() if dotted.partition(".")[0] not in known)
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    kernels = {f.name: f for f in functions if is_kernel(f, modules)}
    helpers = {f.name: f for f in functions if f.name not in kernels}
    return Names(modules, foreign, kernels, helpers, _constants(tree, modules))


def _constants(tree: ast.Module, modules: dict[str, str]) -> dict[str, bool]:
    constants: dict[str, bool] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        made = isinstance(value, ast.Call) and dotted_name(value.func, modules) == "tl.constexpr"
        constants.update({t.id: made for t in targets if isinstance(t, ast.Name) and t.id not in modules})
    return constants


def endless(loop: ast.While) -> bool:
    """Whether the test always holds and nothing in the body leaves the loop."""
    always = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return always and not any(isinstance(n, ast.Break | ast.Return | ast.Raise) for n in ast.walk(loop))


def is_kernel(function: Function, modules: dict[str, str]) -> bool:
    """Whether any decorator of the function is `triton.jit`, called or not."""
    decorators = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    return any(dotted_name(d, modules) == "triton.jit" for d in decorators)


def parameters(function: Function | ast.Lambda) -> list[ast.arg]:
    """Every parameter, in order, `*args` and `**kwargs` included."""
    a = function.args
    extra = [x for x in (a.vararg, a.kwarg) if x is not None]
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *extra]


def similar(name: str, choices: frozenset[str] | set[str]) -> str:
    """`did you mean ...` for a misspelt name of the same module, or ''."""
    module, _, last = name.rpartition(".")
    lasts = {c.rpartition(".")[2]: c for c in sorted(choices) if c.rpartition(".")[0] == module}
    close = [lasts[match] for match in get_close_matches(last, lasts, n=3, cutoff=0.75)]
    return f"did you mean {' or '.join(close)}?" if close else ""


def refused_name(dotted: str, inside_kernel: bool, profile: Profile) -> tuple[str, str, str]:
    """(rule, what, instead) for a dotted name that this scope does not allow."""
    module = dotted.partition(".")[0]
    if inside_kernel and module != "tl":
        hint = profile.hints.get(dotted, "") if module == "triton" else ""
        default = "use the tl function, or pass the value as an argument; a kernel's body knows only tl"
        return "scope", f"{dotted} inside a @triton.jit function", hint or default
    if not inside_kernel and module == "tl":
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
    return profile.instead(dotted) or similar(dotted, choices) or default
