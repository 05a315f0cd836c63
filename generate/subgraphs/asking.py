"""Record the block calls that a kernel file's wrapper makes, by running it on meta tensors.

A file that is built on blocks defines its operator by its block calls. Each call states a function, its arguments, and
the dtype of the computation. So the kernel file is the only definition of the operator, and composed kernels reuse its
functions.
"""

from __future__ import annotations

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
    """A subgraph cannot be composed from blocks; the text gives the reason in one line."""


@dataclass(frozen=True)
class ScalarFunction:
    """A jitted function, by its name in a kernel file or in a block that the file imports."""

    name: str
    file: KernelFile

    def __getitem__(self, grid: Any) -> Any:
        """Raise Uncomposable, because a kernel that launches the function itself is not built on blocks."""
        raise Uncomposable(f"{self.file.overloads[0]}: its kernel launches {self.name} itself, and not by a block")


@dataclass(frozen=True, eq=False)
class AskedResult:
    """One result of a block call.

    Attributes:
        of: Block call.
        number: Number of the result.
    """

    of: AskedOfBlock
    number: int


Operand: TypeAlias = "int | AskedResult | float | bool"  # an int is the position of a tensor in the call


@dataclass(eq=False)
class AskedOfBlock:
    """One call to a block.

    Attributes:
        kind: "elementwise", "reduce", "map_rows" or "matmul".
        operands: Arguments; Python numbers among them are `AskedNumber`s.
        common: Dtype in which operands are read.
        dtypes: Dtypes of the results.
        functions: Functions passed to the block, by role.
        numbers: Further Python numbers passed to the functions.
        how: Other parameters of the block.
    """

    kind: str
    operands: tuple[Any, ...]
    common: torch.dtype
    dtypes: tuple[torch.dtype, ...]
    functions: Mapping[str, ScalarFunction | None] = field(default_factory=dict)
    numbers: tuple[AskedNumber, ...] = ()
    how: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AskedNumber:
    """A Python number that is passed to a block."""

    value: float | int | bool


@dataclass(frozen=True)
class AskedAnswer:
    """A wrapper's return value: for each result the block result it comes from; None if it is not computed."""

    results: tuple[AskedResult | None, ...]


def asked(library: Library, overload: str, arguments: Mapping[str, Any]) -> tuple[AskedAnswer, KernelFile]:
    """Return the block calls that the library's kernel makes for a call, and the kernel file.

    Args:
        library: Library.
        overload: Overload.
        arguments: Arguments by schema name, with tensors on the meta device.

    Raises:
        Uncomposable: If there is no kernel, or if it computes its results by other means than blocks.
    """
    match = library.match(overload)
    if match is None:
        raise Uncomposable(f"{overload}: the library has no kernel for it")
    if not match.plan.direct or match.kernel.draws:
        raise Uncomposable(f"{overload}: its kernel is derived from another's, or draws")
    wrapper = _wrapper(match.kernel)
    bound = bind(resolve(overload), (), arguments)
    asking = _Asking(wrapper.__globals__, [x for x in tree_leaves(bound) if isinstance(x, torch.Tensor)])
    with asking:
        try:
            returned = call(match.plan, bound, wrapper, match.kernel.takes_out, None)
        except (RuntimeError, NotImplementedError, TypeError, KeyError, AttributeError) as error:
            first = str(error).partition("\n")[0]
            raise Uncomposable(f"{overload}: its wrapper does more than ask blocks ({first})") from error
    results = returned if isinstance(returned, tuple | list) else [returned]
    return AskedAnswer(tuple(None if r is None else asking.result(r, overload) for r in results)), match.kernel


@cache
def _wrapper(kernel: KernelFile) -> Callable[..., Any]:
    """Return a kernel file's wrapper; in its module all jitted functions are replaced by ScalarFunctions."""
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
    """Replaces the blocks in a kernel file's module while the wrapper runs, and records the calls to them."""

    def __init__(self, names: dict[str, Any], tensors: Sequence[torch.Tensor]) -> None:
        self._names = names
        self._known: dict[int, tuple[Operand, torch.Tensor]] = {}
        for i, tensor in enumerate(tensors):
            self._known.setdefault(_memory(tensor), (i, tensor))

    def __enter__(self) -> None:
        replacements = {
            "elementwise": self._elementwise,
            "reduce": self._reduce,
            "map_rows": self._map_rows,
            "matmul": self._matmul,
            "as_bits": lambda *tensors: list(tensors),
        }
        self._before = {name: self._names[name] for name in replacements if name in self._names}
        self._names.update({name: replacements[name] for name in self._before})

    def __exit__(self, *_: object) -> None:
        self._names.update(self._before)

    def result(self, tensor: torch.Tensor, overload: str) -> AskedResult:
        """Return the block result that a returned tensor comes from.

        Raises Uncomposable if there is none.
        """
        origin, _ = self._known.get(_memory(tensor), (None, None))
        if not isinstance(origin, AskedResult):
            raise Uncomposable(f"{overload}: its kernel is built on no block that can be composed")
        return origin

    def _operand(self, x: Any) -> Any:
        """Return an argument as an operand.

        Raises Uncomposable if it is a view of a known tensor other than its broadcast.
        """
        if not isinstance(x, torch.Tensor):
            return AskedNumber(x)
        origin, first = self._known.get(_memory(x), (None, None))
        if origin is None or first is None or x.dtype != first.dtype or not _is_broadcast(x, first):
            raise Uncomposable("a step's kernel reads a view that it was given")
        return origin

    def _made(self, asked: AskedOfBlock, outs: Sequence[torch.Tensor | None]) -> None:
        """Register the results of a block call by their memory."""
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
        """Record a call to `elementwise`, and return meta tensors as its results."""
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
        block_call = AskedOfBlock(
            "elementwise",
            tuple(map(self._operand, operands)),
            common,
            tuple(common if t is None else t.dtype for t in outs),
            {"function": function},
            tuple(map(AskedNumber, numbers)),
            {"several": isinstance(dtype, tuple) or isinstance(out, tuple)},
        )
        self._made(block_call, outs)
        return tuple(outs) if block_call.how["several"] else outs[0]

    def _reduce(self, kind: str, inputs: Any, dim: Any, keepdim: bool = False, **options: Any) -> Any:
        """Record a call to `reduce`, and return meta tensors as its results."""
        x, dtype, common = inputs[0], options["dtype"], options.get("common")
        if options.get("indexed"):
            raise Uncomposable(f"a reduction by {kind} needs each element's index")
        dtypes = dtype if isinstance(dtype, tuple) else (dtype,)
        reduced = {d % max(x.dim(), 1) for d in dim} if dim else set(range(x.dim()))
        shape = [1 if d in reduced else n for d, n in enumerate(x.shape) if keepdim or d not in reduced]
        outs = [torch.empty(shape, dtype=d, device="meta") for d in dtypes]
        block_call = AskedOfBlock(
            "reduce",
            tuple(map(self._operand, inputs)),
            common or dtypes[0],
            dtypes,
            {"map": options.get("map"), "finish": options.get("finish")},
            tuple(map(AskedNumber, options.get("numbers", ()))),
            {"kind": kind, "reduced": frozenset(reduced), "several": len(dtypes) > 1, "rank": x.dim()},
        )
        self._made(block_call, outs)
        return tuple(outs) if isinstance(dtype, tuple) else outs[0]

    def _map_rows(self, function: ScalarFunction, inputs: Any, dim: int, **options: Any) -> Any:
        """Record a call to `map_rows`, and return a meta tensor as its result."""
        x = inputs[0]
        out = torch.empty(x.shape, dtype=options["dtype"], device="meta")
        block_call = AskedOfBlock(
            "map_rows",
            tuple(map(self._operand, inputs)),
            (options.get("commons") or [x.dtype])[-1],
            (options["dtype"],),
            {"function": function, "map": options.get("map") or self._names["exponential"]},
            how={"kind": options["kind"], "reduced": frozenset({dim % max(x.dim(), 1)}), "rank": x.dim()},
        )
        self._made(block_call, [out])
        return out

    def _matmul(self, a: Any, b: Any, bias: Any = None, beta: float = 1, alpha: float = 1, **options: Any) -> Any:
        """Record a call to `matmul`, and return a meta tensor as its result."""
        out = torch.empty((a.shape[0], b.shape[1]), dtype=a.dtype, device="meta")
        operands = tuple(None if x is None else self._operand(x) for x in (a, b, bias))
        block_call = AskedOfBlock("matmul", operands, a.dtype, (a.dtype,), how={"beta": beta, "alpha": alpha})
        self._made(block_call, [out])
        return out


def _memory(tensor: torch.Tensor) -> int:
    """Return an identifier for a tensor's storage; meta tensors have no address."""
    return int(tensor.untyped_storage()._cdata)


def _is_broadcast(x: torch.Tensor, first: torch.Tensor) -> bool:
    """Return True if `x` is `first`, or `first` expanded."""
    if x.dim() < first.dim() or x.storage_offset() != first.storage_offset():
        return False
    lead = x.dim() - first.dim()
    if any(n > 1 and s != 0 for n, s in zip(x.shape[:lead], x.stride()[:lead], strict=True)):
        return False
    pairs = zip(x.shape[lead:], x.stride()[lead:], first.shape, first.stride(), strict=True)
    return all((n == m and (s == t or n == 1)) or (m == 1 and s == 0) for n, s, m, t in pairs)
