"""Lint rules for host code: the wrapper, its helpers, and decorator arguments."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

from verify.lint.decorators import check_decorators
from verify.lint.expressions import ExpressionRules
from verify.lint.kinds import OF_PARAMETER, Kind, join, tensor_parameters
from verify.lint.module import module_docstring
from verify.lint.names import Findings, Names, parameters
from verify.lint.profile import Profile
from verify.lint.references import check_annotation
from verify.lint.schema import Schema, bind, stated_schemas
from verify.lint.scope import Scope
from verify.lint.statements import StatementRules


def check_host(tree: ast.Module, names: Names, profile: Profile, findings: Findings) -> None:
    """Report all violations in functions that are not kernels, and in decorators."""
    scope = Scope(names, profile, findings)
    functions = _Functions(scope)
    check_decorators(tree, functions.expressions)
    for helper in names.helpers.values():
        for annotation in (*(p.annotation for p in parameters(helper)), helper.returns):
            check_annotation(annotation, scope)
    wrapper = names.helpers.get("wrapper")
    if wrapper is not None:
        schemas = stated_schemas(module_docstring(tree))
        functions.follow("wrapper", _wrapper_kinds(wrapper, schemas, findings))
    reached = {name for name, _ in functions.results}
    for name, helper in names.helpers.items():
        if name not in reached:
            functions.follow(name, [Kind.VALUE] * len(parameters(helper)))


class _Functions:
    """Walker over one module's host functions, which follows each once per combination of argument kinds.

    `results` holds the result kinds so far.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope, self.helpers = scope, scope.names.helpers
        self.expressions = ExpressionRules(scope, self.follow)
        self.statements = StatementRules(scope, self.expressions)
        guessed = self.helpers if scope.profile.bare else {}  # other files state a schema
        self.tensors = {name: tensor_parameters(node) for name, node in guessed.items()}
        self.results: dict[tuple[str, tuple[Kind, ...]], Kind] = {}

    def follow(self, name: str, kinds: Sequence[Kind]) -> Kind:
        """Check a helper or the wrapper for parameters with these kinds, and return the kind of its result."""
        key = (name, tuple(kinds))
        if key in self.results:
            return self.results[key]
        if len(self.results) >= self.scope.profile.limits["analyses"]:
            problem = "helpers call each other in too many ways"
            self.scope.findings.add("depth", 0, problem, "write fewer, plainer helpers")
            return Kind.VALUE
        # Placeholder while the function is followed: a recursive call yields no information.
        self.results[key] = Kind.VALUE
        scope, statements = self.scope, self.statements
        outer = scope.env, scope.tests, scope.places, scope.lambdas, statements.returns
        scope.env, scope.tests, scope.places, scope.lambdas, statements.returns = {}, {}, defaultdict(set), 0, None
        for arg, kind in zip(parameters(self.helpers[name]), kinds, strict=False):
            known = Kind.TENSOR if kind is Kind.VALUE and arg.arg in self.tensors.get(name, ()) else kind
            scope.bind(arg.arg, known, arg)
        statements.block(self.helpers[name].body)
        self.results[key] = statements.returns or Kind.VALUE
        scope.env, scope.tests, scope.places, scope.lambdas, statements.returns = outer
        return self.results[key]


def _wrapper_kinds(wrapper: ast.FunctionDef, schemas: dict[str, Schema], findings: Findings) -> list[Kind]:
    """Return the kind that the schemas imply for each parameter: a tensor only if every schema passes one."""
    known: dict[str, Kind] = {}
    for schema in schemas.values():
        findings.work(len(parameters(wrapper)))
        bound = bind(schema, wrapper)
        if isinstance(bound, str):
            hint = "take every argument of the schema under its own name, with the schema's default"
            findings.add("wrapper-signature", wrapper, f"wrapper {bound}", hint)
            continue
        for name, kind in bound.items():
            known[name] = join(known.get(name, OF_PARAMETER[kind]), OF_PARAMETER[kind])
    out = {"out": Kind.TENSOR} if "out" not in known else {}
    return [(known | out).get(p.arg, Kind.VALUE) for p in parameters(wrapper)]
