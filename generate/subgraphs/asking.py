"""What a kernel file's wrapper asks of blocks, found by running it on tensors of no memory.

A file that is built on blocks says what its operator is by the functions that it hands to these: which function of an
element, of which arguments, computed in which type. So an operator's meaning stands in its kernel file alone.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils._pytree import tree_leaves

from generate.kernel_library import Library
from traces import UserError
from traces.overloads import bind, resolve
from verify.child.loading import load_wrappers
from verify.contract.derive import call
from verify.contract.kernel_file import KernelFile


class Uncomposable(UserError):
    """Why a subgraph cannot be composed of blocks, in a line."""


@dataclass(frozen=True)
class ScalarFunction:
    """A function of a kernel, by its name in a kernel file or among the blocks that the file imports."""

    name: str
    file: KernelFile

    def __getitem__(self, grid: Any) -> Any:
        raise Uncomposable(f"{self.file.overloads[0]}: its kernel launches {self.name} itself, and not by a block")


@dataclass(frozen=True, eq=False)
class AskedResult:
    """Of one thing asked, the result of this number."""

    of: AskedOfBlock
    number: int


Operand: TypeAlias = "int | AskedResult | float | bool"  # an int is the position of a tensor among the call's


@dataclass(eq=False)
class AskedOfBlock:
    """One call of a block. kind: elementwise, reduce, map_rows or matmul. operands: what it is given. numbers: the
    Python ones among these are `Number`s. common: dtype in which operands are read. dtypes: of the results."""

    kind: str
    operands: tuple[Any, ...]
    common: torch.dtype
    dtypes: tuple[torch.dtype, ...]
    functions: Mapping[str, ScalarFunction | None] = field(default_factory=dict)
    numbers: tuple[AskedNumber, ...] = ()
    how: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AskedNumber:
    """A Python number."""

    value: float | int | bool


@dataclass(frozen=True)
class AskedAnswer:
    """What a wrapper returns: of each of its results where it comes from, None for what is not made."""

    results: tuple[AskedResult | None, ...]


def asked(library: Library, overload: str, arguments: Mapping[str, Any]) -> tuple[AskedAnswer, KernelFile]:
    """What the library's kernel asks for such a call. arguments: by schema name, with tensors on device meta.

    Raises Uncomposable where there is no kernel, and where it does not answer by blocks alone.
    """
    match = library.match(overload)
    if match is None:
        raise Uncomposable(f"{overload}: the library has no kernel for it")
    if not match.plan.direct or match.kernel.draws:
        raise Uncomposable(f"{overload}: its kernel is derived from another's, or draws")
    wrapper = _wrapper(match.kernel)
    given = bind(resolve(overload), (), arguments)
    asking = _Asking(wrapper.__globals__, [x for x in tree_leaves(given) if isinstance(x, torch.Tensor)])
    with asking:
        try:
            made = call(match.plan, given, wrapper, match.kernel.takes_out, None)
        except (RuntimeError, NotImplementedError, TypeError, KeyError, AttributeError) as error:
            first = str(error).partition("\n")[0]
            raise Uncomposable(f"{overload}: its wrapper does more than ask blocks ({first})") from error
    results = made if isinstance(made, tuple | list) else [made]
    return AskedAnswer(tuple(None if r is None else asking.result(r, overload) for r in results)), match.kernel


@cache
def _wrapper(kernel: KernelFile) -> Callable[..., Any]:
    """The wrapper of a kernel file, in whose module all functions of kernels are but names."""
    from triton.runtime import JITFunction
    from triton.runtime.interpreter import InterpretedFunction

    with tempfile.TemporaryDirectory() as directory:
        wrapper: Callable[..., Any] = load_wrappers({f"asked_{kernel.key[:16]}": kernel.source}, Path(directory))[
            f"asked_{kernel.key[:16]}"
        ]
    names = wrapper.__globals__
    for name, value in list(names.items()):
        if isinstance(value, JITFunction | InterpretedFunction):
            names[name] = ScalarFunction(name, kernel)
    return wrapper


class _Asking:
    """Answers blocks in a kernel file's module in the place of the blocks themselves."""

    def __init__(self, names: dict[str, Any], given: Sequence[torch.Tensor]) -> None:
        self._names = names
        self._known: dict[int, tuple[Operand, torch.Tensor]] = {}
        for i, tensor in enumerate(given):
            self._known.setdefault(_memory(tensor), (i, tensor))

    def __enter__(self) -> None:
        own = {
            "elementwise": self._elementwise,
            "reduce": self._reduce,
            "map_rows": self._map_rows,
            "matmul": self._matmul,
            "as_bits": lambda *tensors: list(tensors),
        }
        self._before = {name: self._names[name] for name in own if name in self._names}
        self._names.update({name: own[name] for name in self._before})

    def __exit__(self, *_: object) -> None:
        self._names.update(self._before)

    def result(self, tensor: torch.Tensor, overload: str) -> AskedResult:
        """Where a returned tensor comes from."""
        found, _ = self._known.get(_memory(tensor), (None, None))
        if not isinstance(found, AskedResult):
            raise Uncomposable(f"{overload}: its kernel is built on no block that can be composed")
        return found

    def _operand(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return AskedNumber(x)
        found, first = self._known.get(_memory(x), (None, None))
        if found is None or first is None or x.dtype != first.dtype or not _is_broadcast(x, first):
            raise Uncomposable("a kernel of a step reads a view of what it was given")
        return found

    def _made(self, asked: AskedOfBlock, outs: Sequence[torch.Tensor | None]) -> None:
        for k, out in enumerate(outs):
            if out is not None:
                self._known[_memory(out)] = AskedResult(asked, k), out

    def _elementwise(  # noqa: PLR0913 - the block's parameters
        self,
        function: ScalarFunction,
        *operands: Any,
        numbers: Sequence[Any] = (),
        source: Any = None,
        common: torch.dtype | None = None,
        dtype: Any = None,
        to_float: bool = False,
        out: Any = None,
    ) -> Any:
        if source is not None:
            raise Uncomposable(f"{function.name} takes each element's place, or draws")
        common = common or self._names["common_dtype"](*operands)
        common = self._names["float_dtype"](common) if to_float else common
        tensors = [x for x in operands if isinstance(x, torch.Tensor)]
        if out is None:
            shape = torch.broadcast_tensors(*tensors)[0].shape  # type: ignore[no-untyped-call]
            dtypes = dtype if isinstance(dtype, tuple) else (dtype or common,)
            outs: list[Any] = [torch.empty(shape, dtype=d, device="meta") for d in dtypes]
        else:
            outs = list(out) if isinstance(out, tuple) else [out]
        found = AskedOfBlock(
            "elementwise",
            tuple(map(self._operand, operands)),
            common,
            tuple(common if t is None else t.dtype for t in outs),
            {"function": function},
            tuple(map(AskedNumber, numbers)),
            {"several": isinstance(dtype, tuple) or isinstance(out, tuple)},
        )
        self._made(found, outs)
        return tuple(outs) if found.how["several"] else outs[0]

    def _reduce(self, kind: str, inputs: Any, dim: Any, keepdim: bool = False, **options: Any) -> Any:
        x, dtype, common = inputs[0], options["dtype"], options.get("common")
        if options.get("indexed"):
            raise Uncomposable(f"a reduction by {kind} needs each element's index")
        dtypes = dtype if isinstance(dtype, tuple) else (dtype,)
        reduced = {d % max(x.dim(), 1) for d in dim} if dim else set(range(x.dim()))
        shape = [1 if d in reduced else n for d, n in enumerate(x.shape) if keepdim or d not in reduced]
        outs = [torch.empty(shape, dtype=d, device="meta") for d in dtypes]
        found = AskedOfBlock(
            "reduce",
            tuple(map(self._operand, inputs)),
            common or dtypes[0],
            dtypes,
            {"map": options.get("map"), "finish": options.get("finish")},
            tuple(map(AskedNumber, options.get("numbers", ()))),
            {"kind": kind, "reduced": frozenset(reduced), "several": len(dtypes) > 1, "rank": x.dim()},
        )
        self._made(found, outs)
        return tuple(outs) if isinstance(dtype, tuple) else outs[0]

    def _map_rows(self, function: ScalarFunction, inputs: Any, dim: int, **options: Any) -> Any:
        x = inputs[0]
        out = torch.empty(x.shape, dtype=options["dtype"], device="meta")
        found = AskedOfBlock(
            "map_rows",
            tuple(map(self._operand, inputs)),
            (options.get("commons") or [x.dtype])[-1],
            (options["dtype"],),
            {"function": function, "map": options.get("map") or self._names["exponential"]},
            how={"kind": options["kind"], "reduced": frozenset({dim % max(x.dim(), 1)}), "rank": x.dim()},
        )
        self._made(found, [out])
        return out

    def _matmul(self, a: Any, b: Any, bias: Any = None, beta: float = 1, alpha: float = 1, **options: Any) -> Any:
        out = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device="meta")
        operands = tuple(None if x is None else self._operand(x) for x in (a, b, bias))
        found = AskedOfBlock("matmul", operands, a.dtype, (a.dtype,), how={"beta": beta, "alpha": alpha})
        self._made(found, [out])
        return out


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _is_broadcast(x: torch.Tensor, first: torch.Tensor) -> bool:
    """Whether x is the first, or that expanded."""
    if x.dim() < first.dim() or x.storage_offset() != first.storage_offset():
        return False
    lead = x.dim() - first.dim()
    if math.prod(s or 1 for s in x.stride()[:lead]) != 1 and any(n > 1 for n in x.shape[:lead]):
        return False
    alike = zip(x.shape[lead:], x.stride()[lead:], first.shape, first.stride(), strict=True)
    return all((n == m and (s == t or n == 1)) or (m == 1 and s == 0) for n, s, m, t in alike)
