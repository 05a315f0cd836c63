"""Lint rules for a kernel file's module level: docstring, imports, declarations, constants and function heads.

`check_module` applies them; verify/lint/__init__.py calls it once per file.
"""

from __future__ import annotations

import ast
import re

from verify.lint.names import (
    Findings,
    Function,
    Names,
    called_operators,
    canonical,
    declared_layouts,
    is_kernel,
    literal_strings,
    no_wrapper,
    shown,
)
from verify.lint.profile import LAYOUTS, SPARSE, STRIDED, Profile
from verify.lint.schema import stated_schemas
from verify.lint.tables import ModuleValues
from verify.syntax import walk

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)
_DECLARED = ("OVERLOADS", "DTYPES")
_TYPE = re.compile(r"tl\.(bfloat16|float\d+|u?int\d+)")


def module_docstring(tree: ast.Module) -> str:
    """Return the module docstring, or '' if there is none."""
    return ast.get_docstring(tree, clean=False) or ""  # the indentation marks the continuation lines of a schema


def check_module(tree: ast.Module, names: Names, profile: Profile, findings: Findings, overload: str | None) -> None:
    """Report all violations outside function bodies, and imports anywhere."""
    rules = _ModuleRules(tree, names, profile, findings)
    for position, statement in enumerate(tree.body):
        rules.statement(statement, position)
    rules.imports(tree)
    rules.redefinitions(tree)
    overloads = rules.declared(tree, "OVERLOADS", "overloads")
    rules.overloads(overloads, overload)
    rules.dtypes(rules.declared(tree, "DTYPES", "dtypes"))
    rules.layouts(declared_layouts(tree))
    if not profile.bare:
        rules.docstring(module_docstring(tree), overloads)
    rules.functions()


class _ModuleRules:
    def __init__(self, tree: ast.Module, names: Names, profile: Profile, findings: Findings) -> None:
        self.tree, self.names, self.profile, self.findings = tree, names, profile, findings
        self.bare, self.tables = profile.bare, ModuleValues(tree, names, profile, findings, self._literal)

    def statement(self, node: ast.stmt, position: int) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.FunctionDef):
            self._head(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and (position == 0 or self.bare):
            return  # the docstring
        elif not ((isinstance(node, ast.Assign) and self._constant(node)) or (self.bare and self.tables.allow(node))):
            # The statement is printed whole, however many nodes it has: this happens once per statement.
            text = shown(node, self.profile.limits["bytes"])
            problem = f"module-level code: {text[:60]}"
            hint = "keep to imports, OVERLOADS, DTYPES, functions and constants (X = 1.5, X = tl.constexpr(1.5))"
            self.findings.add("module-state", node, problem, hint)

    def _constant(self, node: ast.Assign) -> bool:
        if not all(isinstance(t, ast.Name) for t in node.targets):
            return False
        value = node.value
        if isinstance(value, ast.Call) and self.names.dotted(value.func) == "tl.constexpr" and len(value.args) == 1:
            return not value.keywords and (self._literal(value.args[0]) or self._is_type(value.args[0]))
        return self._literal(value)

    def _literal(self, node: ast.expr) -> bool:
        """Return True for numbers, strings, tuples of these, plain arithmetic, other constants and `math` values."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Tuple):
            return all(map(self._literal, node.elts))
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub | ast.UAdd) and self._literal(node.operand)
        if isinstance(node, ast.BinOp):
            known = isinstance(node.op, _ARITHMETIC) or _small_power(node)
            return known and self._literal(node.left) and self._literal(node.right)
        if isinstance(node, ast.Call):
            plain = not node.keywords and all(map(self._literal, node.args))
            return plain and (self._is_math(node.func) or (self.bare and self._is_number(node.func)))
        if self.bare and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            return self._is_limit(node, node.value)
        return (isinstance(node, ast.Name) and node.id in self.names.constants) or self._is_math(node)

    def _is_type(self, node: ast.expr) -> bool:
        """Return True for a type such as `tl.int32` that kernels of this dialect may name."""
        dotted = self.names.dotted(node) or ""
        return _TYPE.fullmatch(dotted) is not None and dotted in self.profile.kernel.names

    def _is_number(self, node: ast.expr) -> bool:
        """Return True for `float` in `float("inf")`, and for `int`."""
        return isinstance(node, ast.Name) and node.id in ("float", "int") and not self.names.is_module_level(node.id)

    def _is_limit(self, node: ast.Attribute, call: ast.Call) -> bool:
        """Return True for a limit such as `torch.finfo(torch.float32).max`."""
        host = self.profile.host
        limits = host.functions.get(self.names.dotted(call.func) or "") == "limits"
        dtypes = not call.keywords and all(self.names.dotted(a) in host.values for a in call.args)
        return limits and dtypes and "limits" in host.attributes.get(node.attr, ())

    def _is_math(self, node: ast.expr) -> bool:
        dotted = self.names.dotted(node) or ""
        host = self.profile.host
        return dotted.startswith("math.") and (dotted in host.values or dotted in host.functions)

    # -- functions --------------------------------------------------------------------------------------------------

    def _head(self, node: Function) -> None:
        if node.name in self.names.modules or node.name.startswith("__"):
            self.findings.add("shadowing", node, f"function named {node.name!r}", "choose another name")
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None and not self._default(default):
                problem = f"default argument {shown(default)[:60]}"
                hint = "use a literal number, string, bool, None or tuple; defaults run at import and are kept"
                self.findings.add("default-argument", default, problem, hint)
        if is_kernel(node, self.names.modules) and node.returns is not None and not self.bare:
            self.findings.add("annotation", node, "return annotation on a kernel", "leave it out")

    def _default(self, node: ast.expr) -> bool:
        return self._literal(node) or self.names.dotted(node) in self.profile.host.values

    def functions(self) -> None:
        if "wrapper" in self.names.kernels:
            problem = "wrapper is decorated with @triton.jit"
            self.findings.add(
                "wrapper", self.names.kernels["wrapper"], problem, "make wrapper a plain function that launches"
            )
        elif "wrapper" not in self.names.helpers:
            line, problem, instead = no_wrapper(self.tree)
            self.findings.add("wrapper", line, problem, instead)
        elif not self.bare:
            self._variadic(self.names.helpers["wrapper"])
        calls = self.profile.calls.intersection(called_operators(self.tree))
        if not (self.names.kernels or self.bare or calls):  # a view needs no kernel; the launch log shows if one ran
            self.findings.add(
                "no-kernel", 0, "no @triton.jit function", "write the computation as a @triton.jit kernel"
            )

    def _variadic(self, wrapper: ast.FunctionDef) -> None:
        if wrapper.args.vararg or wrapper.args.kwarg:
            problem = "wrapper takes *args or **kwargs"
            self.findings.add("wrapper-signature", wrapper, problem, "name every argument of the schema")

    # -- declarations -----------------------------------------------------------------------------------------------

    def declared(self, tree: ast.Module, name: str, rule: str) -> tuple[str, ...]:
        example = '("aten::exp",)' if name == "OVERLOADS" else '("bfloat16", "float16", "float32")'
        hint = f"write {name} = {example} at module level"
        for node in tree.body:
            if not (isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [name]):
                continue
            value = literal_strings(node.value)
            if value is not None:
                return value
            self.findings.add(rule, node, f"{name} is not a literal tuple of strings", hint)
            return ()
        if not self.bare:
            self.findings.add(rule, 0, f"{name} is missing", hint)
        return ()

    def overloads(self, declared: tuple[str, ...], wanted: str | None) -> None:
        if wanted is not None and declared and wanted not in declared:
            problem = f"OVERLOADS does not name {wanted}"
            self.findings.add("overloads", 0, problem, f'write OVERLOADS = ("{wanted}",)')

    def dtypes(self, declared: tuple[str, ...]) -> None:
        for dtype in declared:
            if dtype not in self.profile.dtypes:
                problem = f"DTYPES names {dtype!r}"
                self.findings.add("dtypes", 0, problem, f"choose from {', '.join(self.profile.dtypes)}")

    def layouts(self, declared: tuple[str, ...] | None) -> None:
        if declared is not None and not (declared and {*declared} <= {SPARSE, STRIDED}):
            problem = f"{LAYOUTS} names {', '.join(map(repr, declared)) or 'nothing'}"
            hint = (
                f'leave it out, or write {LAYOUTS} = ("{SPARSE}", "{STRIDED}") for a kernel that takes sparse tensors'
            )
            self.findings.add("layouts", 0, problem, hint)

    def docstring(self, text: str, overloads: tuple[str, ...]) -> None:
        stated = stated_schemas(text)
        for overload in overloads:
            if overload not in stated:
                problem = f"the module docstring does not begin with the schema of {overload}"
                hint = "begin the file with a docstring: the schema lines as given, an empty line, a sentence on how"
                self.findings.add("docstring", 0, problem, hint)

    # -- imports and names ------------------------------------------------------------------------------------------

    def imports(self, tree: ast.Module) -> None:
        top = {id(n) for n in tree.body}
        allowed = "; ".join(_import(alias, module) for alias, module in self.profile.imports.items())
        for node in walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            fine = isinstance(node, ast.Import) and all(self._known_import(a) for a in node.names)
            if not (fine or (self.bare and self._importable(node))) or id(node) not in top:
                self.findings.add("import", node, shown(node)[:80], f"at the top of the file, only: {allowed}")

    def _known_import(self, alias: ast.alias) -> bool:
        module = self.profile.imports.get(alias.asname or alias.name)
        return module == alias.name

    def _importable(self, node: ast.Import | ast.ImportFrom) -> bool:
        """Return True if the import binds only names that the allow-lists contain."""
        modules = self.profile.importable | set(self.profile.imports.values())
        if isinstance(node, ast.Import):
            return all(a.name in modules for a in node.names)
        if node.level or node.module not in modules:
            return False
        if node.module in ("typing", "__future__"):
            return all(a.name != "*" for a in node.names)
        host = self.profile.host
        allowed = host.functions.keys() | host.values | host.types | self.profile.kernel.names
        allowed |= self.profile.decorators.keys() | {"triton.jit", "tl"} | modules | set(map(canonical, modules))
        return all(self.names.modules.get(a.asname or a.name) in allowed for a in node.names)

    def redefinitions(self, tree: ast.Module) -> None:
        bound: set[str] = set()
        for node in tree.body:
            new: set[str] = set()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                new = {node.name}
            elif isinstance(node, ast.Import):
                new = {a.asname or a.name for a in node.names}
            elif isinstance(node, ast.Assign):
                names = [n for t in node.targets for n in walk(t) if isinstance(n, ast.Name)]
                new = {n.id for n in names if isinstance(n.ctx, ast.Store)}
            for name in sorted(new & bound):
                self.findings.add("redefinition", node, f"{name} is defined twice", "define every name once")
            bound |= new


def _small_power(node: ast.BinOp) -> bool:
    """Return True for `1 << 20` or `2 ** 0.5`: powers and shifts with operands small enough to evaluate quickly."""
    parts = [p.value if isinstance(p, ast.Constant) else None for p in (node.left, node.right)]
    small = all(isinstance(p, int | float) and -64 <= p <= 64 for p in parts)
    return isinstance(node.op, ast.Pow | ast.LShift) and small


def _import(alias: str, module: str) -> str:
    return f"import {module}" if alias == module else f"import {module} as {alias}"
