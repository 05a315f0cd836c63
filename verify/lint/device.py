"""Lint rules for device limitations: track loaded values through a kernel file's kernels.

A value is `loaded` if it depends on the result of tl.load or an atomic. It is `half` if it may still have its
type in memory, or was converted to fp16 or bf16.
"""

from __future__ import annotations

import ast
from itertools import chain

from verify.lint.names import Findings, Names, parameters, shown
from verify.lint.profile import Profile
from verify.syntax import children, walk

_STORES = frozenset({"tl.store", "tl.atomic_add", "tl.atomic_max", "tl.atomic_min", "tl.atomic_xchg", "tl.atomic_cas"})
_LOADS = frozenset({"tl.load"}) | _STORES - {"tl.store"}
_MATHS = frozenset(
    f"{module}.{name}"
    for module in ("tl", "tl.math")
    for name in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "sqrt_rn", "rsqrt", "erf", "sigmoid", "softmax")
)
_HALF = frozenset({"tl.float16", "tl.bfloat16"})
_SHAPING = frozenset({"tl.zeros", "tl.full"})
_LANE_BYTES = 4  # float32, in which maths is done
Labels = frozenset[str]
_NOTHING: Labels = frozenset()


def check_device(names: Names, profile: Profile, findings: Findings) -> None:
    """Report scatter stores, half-precision maths and misaligned accesses, as far as the profile forbids them."""
    if not profile.forbidden and profile.alignment <= 1:
        return
    flows = _flows(names, findings)
    for flow in flows.values():
        if "scatter-store" in profile.forbidden:
            _scatter(flow, findings)
        if "half-maths" in profile.forbidden:
            _half_maths(flow, findings)
    if profile.alignment > 1:
        _alignment(names, profile, findings)


class _Flow:
    """Labels for the local names and expressions in one kernel, followed statement by statement.

    Attributes:
        parameter_labels: Parameter labels, joined over all calls.
        expression_labels: Labels for every argument and binary operation, by node id.
    """

    def __init__(self, node: ast.FunctionDef, names: Names, flows: dict[str, _Flow], findings: Findings) -> None:
        self.node, self.names, self.flows, self.findings = node, names, flows, findings
        self.parameter_labels: dict[str, Labels] = {p.arg: _NOTHING for p in parameters(node)}
        self.local: dict[str, Labels] = {}
        self.expression_labels: dict[int, Labels] = {}
        self.returns: Labels = _NOTHING

    def follow(self) -> bool:
        """Follow the body once. Return True if any label is new."""
        before = dict(self.parameter_labels), dict(self.expression_labels), self.returns
        self.findings.work(len(self.parameter_labels) + len(self.expression_labels))
        self.local = dict(self.parameter_labels)
        self._block(self.node.body)
        return (self.parameter_labels, self.expression_labels, self.returns) != before

    def _block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        self.findings.work(10)
        for part in children(node):
            if isinstance(part, ast.expr):
                self._note(part)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            old = self.of(node.target) if isinstance(node, ast.AugAssign) else _NOTHING
            self._bind(node.targets if isinstance(node, ast.Assign) else [node.target], old | self.of(node.value))
        elif isinstance(node, ast.Return) and node.value is not None:
            self.returns |= self.of(node.value)
        elif isinstance(node, ast.If):
            self._branches([node.body, node.orelse])
        elif isinstance(node, ast.For | ast.While):
            for _ in range(2):  # the second pass starts with the labels that the first left, if they differ
                before = self.local
                self._branches([node.body, []])
                if self.local == before:
                    break

    def _bind(self, targets: list[ast.expr], labels: Labels) -> None:
        for name in chain.from_iterable(map(walk, targets)):
            if isinstance(name, ast.Name):
                self.local[name.id] = labels

    def _branches(self, bodies: list[list[ast.stmt]]) -> None:
        before, after = self.local, list[dict[str, Labels]]()
        self.findings.work(len(before))
        for body in bodies:
            self.local = dict(before)
            self._block(body)
            after.append(self.local)
        self.local = {n: frozenset(chain.from_iterable(e.get(n, _NOTHING) for e in after)) for e in after for n in e}

    def _note(self, expression: ast.expr) -> None:
        for node in walk(expression):
            if isinstance(node, ast.Call):
                self._pass_on(node)
            for part in node.args if isinstance(node, ast.Call) else [node] if isinstance(node, ast.BinOp) else []:
                self.expression_labels[id(part)] = self.expression_labels.get(id(part), _NOTHING) | self.of(part)

    def _pass_on(self, node: ast.Call) -> None:
        callee = self.flows.get(getattr(node.func, "id", ""))
        if callee is None:
            return
        named = [(p.arg, a) for p, a in zip(parameters(callee.node), node.args, strict=False)]
        for name, value in [*named, *((k.arg, k.value) for k in node.keywords if k.arg in callee.parameter_labels)]:
            callee.parameter_labels[str(name)] |= self.of(value)

    def of(self, node: ast.expr) -> Labels:
        """Return the labels that an expression may have."""
        self.findings.work()
        if isinstance(node, ast.Name):
            return self.local.get(node.id, _NOTHING)
        if isinstance(node, ast.Compare):
            return self._join(node) - {"half"}
        if not isinstance(node, ast.Call):
            return self._join(node)
        dotted = self.names.dotted(node.func)
        if dotted in _LOADS:
            return frozenset({"loaded", "half"})
        callee = self.flows.get(getattr(node.func, "id", ""))
        if callee is not None:
            return callee.returns
        if dotted in _SHAPING:
            return frozenset({"half"}) if _names_half(node, self.names) else _NOTHING
        if dotted == "tl.cast" or (isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cast")):
            labels = self._join(node) - {"half"}
            return labels | {"half"} if _names_half(node, self.names) else labels
        return self._join(node)

    def _join(self, node: ast.AST) -> Labels:
        parts = [self.of(c) for c in children(node) if isinstance(c, ast.expr)]
        parts += [self.of(k.value) for k in getattr(node, "keywords", [])]
        return frozenset(chain.from_iterable(parts))


def _flows(names: Names, findings: Findings) -> dict[str, _Flow]:
    flows: dict[str, _Flow] = {}
    for name, node in names.kernels.items():
        flows[name] = _Flow(node, names, flows, findings)
    while any([flow.follow() for flow in flows.values()]):  # the list makes every flow run in each round
        pass
    return flows


def _calls(flow: _Flow) -> list[tuple[ast.Call, str]]:
    calls = [n for n in walk(flow.node) if isinstance(n, ast.Call)]
    return [(n, flow.names.dotted(n.func) or "") for n in calls]


def _names_half(node: ast.Call, names: Names) -> bool:
    values = [*node.args, *(k.value for k in node.keywords)]
    return any(names.dotted(v) in _HALF for v in values)


def _scatter(flow: _Flow, findings: Findings) -> None:
    for node, dotted in _calls(flow):
        if dotted in _STORES and node.args and "loaded" in flow.expression_labels.get(id(node.args[0]), _NOTHING):
            problem = f"{dotted} to offsets that were loaded: {shown(node.args[0])[:60]}"
            hint = "store in order: let every program find what belongs at its own offsets, by loads with any offsets"
            findings.add("scatter-store", node, problem, hint)


def _half_maths(flow: _Flow, findings: Findings) -> None:
    hint = "convert first: tl.load(...).to(tl.float32), and convert back in tl.store"
    for node, dotted in _calls(flow):
        if dotted in _MATHS and any("half" in flow.expression_labels.get(id(a), _NOTHING) for a in node.args):
            findings.add("half-maths", node, f"{dotted} of a value that was not converted to fp32", hint)
        elif dotted in _SHAPING and _names_half(node, flow.names):
            findings.add("half-maths", node, f"{shown(node)[:60]} accumulates in half precision", hint)
        elif dotted == "tl.dot" and _names_half(node, flow.names):
            findings.add("half-maths", node, "tl.dot accumulates in half precision", "leave out_dtype at tl.float32")
    for division in walk(flow.node):
        is_division = isinstance(division, ast.BinOp) and isinstance(division.op, ast.Div)
        if is_division and "half" in flow.expression_labels.get(id(division), _NOTHING):
            problem = f"division of a value that was not converted to fp32: {shown(division)[:60]}"
            findings.add("half-maths", division, problem, hint)


# -- alignment ---------------------------------------------------------------------------------------------------------


def _alignment(names: Names, profile: Profile, findings: Findings) -> None:
    """Report blocks shorter than one aligned float32 access, pointers shifted by a few elements, and pointer casts."""
    lanes = profile.alignment // _LANE_BYTES
    for node in names.kernels.values():
        for call in [n for n in walk(node) if isinstance(n, ast.Call)]:
            dotted = names.dotted(call.func)
            if dotted == "tl.arange" and len(call.args) == 2 and _is_short(call.args[1], lanes):
                _short(call, shown(call), lanes, profile, findings)
            if dotted in _LOADS | _STORES and call.args and _shift(call.args[0]) % lanes:
                problem = f"{shown(call.args[0])[:60]} begins {_shift(call.args[0])} elements off"
                hint = f"begin every access at a multiple of {profile.alignment} bytes, and mask what is not wanted"
                findings.add("alignment", call, problem, hint)
            if dotted == "tl.pointer_type":
                hint = "load with the tensor's own type and convert the value"
                findings.add("alignment", call, f"{shown(call)[:60]} changes a pointer's step", hint)
    blocks = _blocks(names)
    helpers = [n for h in names.helpers.values() for n in walk(h) if isinstance(n, ast.Call)]
    for call in helpers:
        for keyword in call.keywords if isinstance(call.func, ast.Subscript) else []:
            if keyword.arg in blocks and _is_short(keyword.value, lanes):
                _short(keyword.value, f"{keyword.arg}={shown(keyword.value)}", lanes, profile, findings)


def _blocks(names: Names) -> set[str]:
    """Return the parameters that are the length of a tl.arange."""
    calls = [n for k in names.kernels.values() for n in walk(k) if isinstance(n, ast.Call)]
    ranges = [c for c in calls if names.dotted(c.func) == "tl.arange" and len(c.args) == 2]
    return {c.args[1].id for c in ranges if isinstance(c.args[1], ast.Name)}


def _is_short(node: ast.expr, lanes: int) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and bool(node.value % lanes)


def _short(at: ast.AST, text: str, lanes: int, profile: Profile, findings: Findings) -> None:
    problem = f"a block that is no multiple of {profile.alignment} bytes in float32: {text}"
    findings.add("alignment", at, problem, f"choose a block of {lanes} elements or more, and mask the rest")


def _shift(pointer: ast.expr) -> int:
    """Return the sum of the literal numbers in `pointer + i + 1`, in elements."""
    if isinstance(pointer, ast.Constant) and isinstance(pointer.value, int):
        return pointer.value
    if isinstance(pointer, ast.BinOp) and isinstance(pointer.op, ast.Add | ast.Sub):
        right = _shift(pointer.right)
        return _shift(pointer.left) + (right if isinstance(pointer.op, ast.Add) else -right)
    return 0
