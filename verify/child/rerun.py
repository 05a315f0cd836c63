"""Repeat the launches of a call in a process that runs nothing from the kernel file but its kernels.

The wrapper's actions arrive as a list (verify/child/launch_log.py), which was recorded on arguments filled with
zeros. Here the list is carried out on the real arguments. So the answer is computed by the kernels alone, and the
notes come from a process that never ran the rest of the file.
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
    """Error raised if the recorded list does not agree with the effects of its launches."""


class Rerun:
    """Runner, as in child.serve.Runner, that carries out the list in each request."""

    lost = False

    def __init__(self, job: dict[str, Any], mode: str) -> None:
        self._job = job
        self._kernels: dict[str, ModuleType] = {}

    def run(self, header: dict[str, Any], packed: Packed) -> tuple[dict[str, Any], Packed]:
        """Carry out one request; raise the kernel's errors, or NotComputed."""
        notes.clear()
        reached.clear()
        self._kernels = self._kernels or load_kernels(self._job["sources"], Path(self._job["directory"]))
        log, memory = header["log"], list[Rebuilt]()
        arguments = unpack(packed, memory=memory)
        read_only = protected(self._job["plan"]["overload"], arguments)
        simulator.configure(0, self._job["alignment"], memory, read_only)
        storages = _Storages(memory, log["storages"], self._kernels)
        with torch.no_grad():
            for event in log["events"]:
                _perform(event, storages, self._kernels, frozenset(header["allowed"]))
            data = [storages.bytes_of(*location) for location in log["answer"]]
        outside = not all(m.guards_intact() for m in memory)
        groups = [StorageSpan(len(d), 0, "cpu") for d in data]
        return {"status": "ok", "outside": outside, **notes.reply()}, Packed({}, [], groups, list(data))


def load_kernels(sources: dict[str, str], directory: Path) -> dict[str, ModuleType]:
    """Return modules by role that contain only kernels.

    From each file, only kernels, numbers, and imports of Triton and `math` are executed.
    """
    modules = {}
    for role, source in sources.items():
        path = written(source, directory, role)
        module = ModuleType(f"{MODULE}{role}")
        module.__file__ = str(path)
        exec(compile(kernels_alone(ast.parse(source)), str(path), "exec"), vars(module))
        modules[role] = module
    return modules


def kernels_alone(tree: ast.Module) -> ast.Module:
    """Return the program with only kernels, numbers, and imports of Triton and `math`.

    A kernel retains only the decorator that makes it a kernel. The effects of other decorators, such as an
    autotuner's choice, are part of the recorded launches.
    """
    statements: list[ast.stmt] = []
    numbers: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names = [a for a in statement.names if a.name.partition(".")[0] in _IMPORTS]
            statements += [ast.copy_location(ast.Import(names), statement)] if names else []
        elif isinstance(statement, ast.ImportFrom):
            statements += [statement] if (statement.module or "").partition(".")[0] in _IMPORTS else []
        elif isinstance(statement, ast.FunctionDef):
            statements += _kernel_alone(statement, numbers)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and _is_number(statement.value, numbers):
            assert statement.value is not None
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            named = [t for t in targets if isinstance(t, ast.Name)]
            numbers |= {t.id for t in named}
            statements += [ast.copy_location(ast.Assign([*named], statement.value), statement)] if named else []
    return ast.fix_missing_locations(ast.Module(statements, []))


def _kernel_alone(node: ast.FunctionDef, numbers: set[str]) -> list[ast.stmt]:
    """Return the kernel without computed annotations, defaults and other decorators; [] if it is no kernel."""
    marks = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    kernel = [mark for mark in marks if ast.unparse(mark) in ("triton.jit", "gluon.jit", "jit")]
    parameters = node.args
    for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        annotation = parameter.annotation and ast.unparse(parameter.annotation)
        parameter.annotation = parameter.annotation if annotation in _CONSTEXPR else None
    parameters.defaults = [d if _is_number(d, numbers) else ast.Constant(None) for d in parameters.defaults]
    parameters.kw_defaults = [
        d if d is None or _is_number(d, numbers) else ast.Constant(None) for d in parameters.kw_defaults
    ]
    node.decorator_list, node.returns = kernel[-1:], None
    return [node] if kernel else []


def _is_number(node: ast.expr | None, numbers: set[str]) -> bool:
    """Return True for numbers, strings, Triton types, and expressions built from these."""
    if isinstance(node, ast.Name):
        return node.id in numbers
    if isinstance(node, ast.Attribute):
        return ast.unparse(node).partition(".")[0] in ("math", "tl", "triton")
    if isinstance(node, ast.Call):
        plain = not node.keywords and all(_is_number(a, numbers) for a in node.args)
        function = ast.unparse(node.func)
        return plain and (function in (*_CONSTEXPR, "float", "int") or function[:5] == "math.")
    if node is None or not isinstance(node, _NUMBERS):
        return False
    parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return all(_is_number(part, numbers) for part in parts)


class _Storages:
    """Storages of a recorded list, by number, and decoder for the values in its events."""

    def __init__(self, memory: list[Rebuilt], contents: list[dict[str, Any]], kernels: dict[str, ModuleType]) -> None:
        self._all = [*memory, *map(_filled, contents)]
        self._unknown = {n for n, c in enumerate(contents, len(memory)) if c["holds"] is None}
        self._kernels = kernels

    def made(self, number: int, tensor: torch.Tensor) -> None:
        """Use the tensor's storage as the storage with this number."""
        storage = tensor.untyped_storage()
        buffer = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
        self._all[number] = Rebuilt(buffer, 0, storage.nbytes())

    def bytes_of(self, number: int, first: int, nbytes: int) -> bytes:
        """Return the present bytes of a part of a storage."""
        memory = self._all[number]
        return memory.buffer[memory.start + first : memory.start + first + nbytes].numpy().tobytes()

    def value(self, encoded: Any) -> Any:
        """Decode a value in an event."""
        if not isinstance(encoded, dict):
            return encoded
        kind, content = next(iter(encoded.items()))
        decoders: dict[str, Callable[[Any], Any]] = {
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
        return decoders[kind](content)

    def _tensor(self, number: int, first: int, dtype: str, shape: list[int], stride: list[int]) -> torch.Tensor:
        if number in self._unknown:
            raise NotComputed("the wrapper hands on memory that holds what no kernel stored there")
        memory, element = self._all[number], getattr(torch, dtype)
        elements = span_elements(tuple(shape), tuple(stride))
        first = first if elements else min(first, memory.nbytes)  # for example, the imaginary part of an empty tensor
        if not 0 <= first <= memory.nbytes - elements * element.itemsize:
            raise NotComputed("the wrapper hands on a tensor that reaches beyond its memory")
        tensor = torch.empty(0, dtype=element)
        return tensor.set_(memory.buffer.untyped_storage(), (memory.start + first) // element.itemsize, shape, stride)


def _filled(content: dict[str, Any]) -> Rebuilt:
    pattern, size = bytes.fromhex(content["holds"] or ""), content["nbytes"]
    buffer = torch.empty(size, dtype=torch.uint8)
    if size and pattern:
        buffer.copy_(torch.frombuffer(bytearray(pattern * (size // len(pattern))), dtype=torch.uint8))
    return Rebuilt(buffer, 0, size)


def _perform(
    event: dict[str, Any], storages: _Storages, kernels: dict[str, ModuleType], allowed: frozenset[str]
) -> None:
    if "launch" in event:
        arguments = {name: storages.value(recorded) for name, recorded in event["arguments"].items()}
        _kernel(kernels, event["launch"])[tuple(event["grid"])](**arguments)
    elif "read" in event:
        actual, recorded = storages.value(event["read"]).item(), storages.value(event["value"])
        actual = actual.real if isinstance(actual, complex) else actual
        if actual != recorded:
            raise NotComputed(f"the wrapper read {recorded} back where its launches leave {actual}")
    else:
        if event["call"] not in allowed:
            raise NotComputed(f"the wrapper called {event['call']}")
        args = [storages.value(v) for v in event["args"]]
        keywords = {k: storages.value(v) for k, v in event["kwargs"].items()}
        with watched():
            result = resolve(event["call"])(*args, **keywords)
        if event["makes"] is not None:
            storages.made(event["makes"], result)


def _kernel(kernels: dict[str, ModuleType], identifier: list[str]) -> Any:
    from triton.runtime.interpreter import InterpretedFunction

    role, name = identifier
    kernel = vars(kernels[role]).get(name) if role in kernels else None
    if not isinstance(kernel, InterpretedFunction):
        raise NotComputed(f"{name} is no kernel of the file's own")
    return kernel


def _type(name: str) -> Any:
    from triton import language as tl

    return tl.dtype(name)


def _reinterpreted(base: Any, dtype: Any) -> Any:
    import triton

    return triton.reinterpret(base, dtype)


def _descriptor(base: torch.Tensor, shape: list[int], strides: list[int], block: list[int]) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(base, shape, strides, block)
