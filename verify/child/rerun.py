"""A call's launches run again, in a process in which of the kernel file nothing runs but its kernels.

What the wrapper did comes as a list (verify/child/launch_log.py), made from a call whose arguments held zeros. Here it
is carried out on the real ones: so the answer is what the kernels compute, and the notes are those of a process that
never held the file's other Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from traces.overloads import resolve
from traces.values import Packed, Rebuilt, StorageSpan, span_elements, unpack
from verify.child.answers import protected
from verify.child.guards import notes, watched
from verify.child.loading import MODULE, written
from verify.child.reach import reached
from verify.child.simulator import simulator

_IMPORTS = frozenset({"triton", "math"})
_CONSTEXPR = ("tl.constexpr", "gl.constexpr", "triton.language.constexpr", "constexpr")
_NUMBERS = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context)


class NotComputed(Exception):
    """The list says what its own launches do not bear out."""


class Rerun:
    """As child.serve.Runner: carries out the list of each request."""

    lost = False

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        self._job = job
        self._kernels: dict[str, ModuleType] = {}

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Raises whatever a kernel raises, and NotComputed."""
        notes.clear()
        reached.clear()
        self._kernels = self._kernels or load_kernels(self._job["sources"], Path(self._job["directory"]))
        log, memory = header["log"], list[Rebuilt]()
        arguments = unpack(packed, memory=memory)
        may_not = protected(self._job["plan"]["overload"], arguments)
        simulator.configure(0, self._job["alignment"], memory, may_not)
        storages = _Storages(memory, log["storages"], self._kernels)
        with torch.no_grad():
            for event in log["events"]:
                _perform(event, storages, self._kernels, frozenset(header["allowed"]))
            data = [storages.bytes_of(*place) for place in log["answer"]]
        outside = not all(m.guards_intact() for m in memory)
        groups = [StorageSpan(len(d), 0, "cpu") for d in data]
        return {"status": "ok", "outside": outside, **notes.reply()}, Packed({}, [], groups, list(data))


def load_kernels(sources: dict[str, str], directory: Path) -> dict[str, ModuleType]:
    """Modules of the kernels alone, by role: of a file only its imports of Triton and `math`, numbers and kernels are
    executed."""
    modules = {}
    for role, source in sources.items():
        path = written(source, directory, role)
        module = ModuleType(f"{MODULE}{role}")
        module.__file__ = str(path)
        exec(compile(kernels_alone(ast.parse(source)), str(path), "exec"), vars(module))
        modules[role] = module
    return modules


def kernels_alone(tree: ast.Module) -> ast.Module:
    """The program without what is no kernel. Of decorators what makes kernels stays; by the others the wrapper has
    chosen."""
    kept: list[ast.stmt] = []
    numbers: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names = [a for a in statement.names if a.name.partition(".")[0] in _IMPORTS]
            kept += [ast.copy_location(ast.Import(names), statement)] if names else []
        elif isinstance(statement, ast.ImportFrom):
            kept += [statement] if (statement.module or "").partition(".")[0] in _IMPORTS else []
        elif isinstance(statement, ast.FunctionDef):
            kept += _kernel_alone(statement, numbers)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and _is_number(statement.value, numbers):
            assert statement.value is not None
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            named = [t for t in targets if isinstance(t, ast.Name)]
            numbers |= {t.id for t in named}
            kept += [ast.copy_location(ast.Assign([*named], statement.value), statement)] if named else []
    return ast.fix_missing_locations(ast.Module(kept, []))


def _kernel_alone(node: ast.FunctionDef, numbers: set[str]) -> list[ast.stmt]:
    """A kernel, of whose head nothing is computed; or nothing, of another function."""
    marks = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    kernel = [mark for mark in marks if ast.unparse(mark) in ("triton.jit", "gluon.jit", "jit")]
    given = node.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        told = parameter.annotation and ast.unparse(parameter.annotation)
        parameter.annotation = parameter.annotation if told in _CONSTEXPR else None
    given.defaults = [d if _is_number(d, numbers) else ast.Constant(None) for d in given.defaults]
    given.kw_defaults = [d if d is None or _is_number(d, numbers) else ast.Constant(None) for d in given.kw_defaults]
    node.decorator_list, node.returns = kernel[-1:], None
    return [node] if kernel else []


def _is_number(node: ast.expr | None, numbers: set[str]) -> bool:
    """Numbers, texts, types of Triton's and what is made of them."""
    if isinstance(node, ast.Name):
        return node.id in numbers
    if isinstance(node, ast.Attribute):
        return ast.unparse(node).partition(".")[0] in ("math", "tl", "triton")
    if isinstance(node, ast.Call):
        plain = not node.keywords and all(_is_number(a, numbers) for a in node.args)
        named = ast.unparse(node.func)
        return plain and (named in (*_CONSTEXPR, "float", "int") or named[:5] == "math.")
    if node is None or not isinstance(node, _NUMBERS):
        return False
    parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return all(_is_number(part, numbers) for part in parts)


class _Storages:
    """The memory of a list, by number, and the values of its events."""

    def __init__(self, memory: list[Rebuilt], contents: list[dict[str, Any]], kernels: dict[str, ModuleType]) -> None:
        self._all = [*memory, *map(_filled, contents)]
        self._unknown = {n for n, c in enumerate(contents, len(memory)) if c["holds"] is None}
        self._kernels = kernels

    def made(self, number: int, tensor: torch.Tensor) -> None:
        """The storage of this number is the tensor's."""
        storage = tensor.untyped_storage()
        held = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
        self._all[number] = Rebuilt(held, 0, storage.nbytes())

    def bytes_of(self, number: int, first: int, nbytes: int) -> bytes:
        """As they are now."""
        held = self._all[number]
        return held.buffer[held.start + first : held.start + first + nbytes].numpy().tobytes()

    def value(self, told: Any) -> Any:
        """What an event says of an argument."""
        if not isinstance(told, dict):
            return told
        kind, content = next(iter(told.items()))
        made: dict[str, Callable[[Any], Any]] = {
            "tensor": lambda parts: self._tensor(*parts),
            "float": float.fromhex,
            "list": lambda items: [self.value(v) for v in items],
            "tuple": lambda items: tuple(self.value(v) for v in items),
            "torch": lambda name: getattr(torch, name),
            "device": torch.device,
            "kernel": lambda named: _kernel(self._kernels, named),
            "tl": _type,
            "reinterpreted": lambda parts: _reinterpreted(*map(self.value, parts)),
            "descriptor": lambda parts: _descriptor(*map(self.value, parts)),
        }
        return made[kind](content)

    def _tensor(self, number: int, first: int, dtype: str, shape: list[int], stride: list[int]) -> torch.Tensor:
        if number in self._unknown:
            raise NotComputed("the wrapper hands on memory that holds what no kernel stored there")
        held, of = self._all[number], getattr(torch, dtype)
        elements = span_elements(tuple(shape), tuple(stride))
        first = first if elements else min(first, held.nbytes)  # such as the imaginary part of no numbers
        if not 0 <= first <= held.nbytes - elements * of.itemsize:
            raise NotComputed("the wrapper hands on a tensor that reaches beyond its memory")
        made = torch.empty(0, dtype=of)
        return made.set_(held.buffer.untyped_storage(), (held.start + first) // of.itemsize, shape, stride)


def _filled(told: dict[str, Any]) -> Rebuilt:
    pattern, size = bytes.fromhex(told["holds"] or ""), told["nbytes"]
    held = torch.empty(size, dtype=torch.uint8)
    if size and pattern:
        held.copy_(torch.frombuffer(bytearray(pattern * (size // len(pattern))), dtype=torch.uint8))
    return Rebuilt(held, 0, size)


def _perform(
    event: dict[str, Any], storages: _Storages, kernels: dict[str, ModuleType], allowed: frozenset[str]
) -> None:
    if "launch" in event:
        given = {name: storages.value(told) for name, told in event["arguments"].items()}
        _kernel(kernels, event["launch"])[tuple(event["grid"])](**given)
    elif "read" in event:
        held, told = storages.value(event["read"]).item(), storages.value(event["value"])
        held = held.real if isinstance(held, complex) else held
        if held != told:
            raise NotComputed(f"the wrapper read {told} back where its launches leave {held}")
    else:
        if event["call"] not in allowed:
            raise NotComputed(f"the wrapper called {event['call']}")
        args = [storages.value(v) for v in event["args"]]
        named = {k: storages.value(v) for k, v in event["kwargs"].items()}
        with watched():
            result = resolve(event["call"])(*args, **named)
        if event["makes"] is not None:
            storages.made(event["makes"], result)


def _kernel(kernels: dict[str, ModuleType], named: list[str]) -> Any:
    from triton.runtime.interpreter import InterpretedFunction

    role, name = named
    found = vars(kernels[role]).get(name) if role in kernels else None
    if not isinstance(found, InterpretedFunction):
        raise NotComputed(f"{name} is no kernel of the file's own")
    return found


def _type(name: str) -> Any:
    from triton import language as tl

    return tl.dtype(name)


def _reinterpreted(base: Any, dtype: Any) -> Any:
    import triton

    return triton.reinterpret(base, dtype)


def _descriptor(base: torch.Tensor, shape: list[int], strides: list[int], block: list[int]) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(base, shape, strides, block)
