"""The arguments of a call, as far as they decide whether a kernel serves it."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, reduce
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves, tree_map

from traces.facts import tagged
from traces.overloads import UPDATED, base_name, bind, call, name_of, positional, resolve, written
from verify.contract.derive import base_arguments, plans

ELSEWHERE = "arguments on another device"
NUMBER = "a number in the place of a tensor"
PINNED = "pinned memory"
NO_MEMORY = "a zero tensor, which has no memory"  # torch._efficientzerotensor, as derivatives that are zero everywhere
SPARSE = "sparse_coo"  # stands among the dtypes for calls with such a tensor, as in verdicts
SEVERAL = "several sparse tensors"
WRITTEN = "a sparse tensor that is written"  # a kernel makes new ones, and cannot put other parts into it
# What operators and their meta functions in Python raise for arguments that they do not take.
_ERRORS = (RuntimeError, LookupError, ValueError, TypeError, ArithmeticError, AttributeError, AssertionError)
_TOO_LARGE = re.compile(r"without overflow|out of bounds")  # numbers and indices, whatever the dtype is
_CPU_LACKS = re.compile(
    r"^Could not run |neither PyTorch nor the library|on CPU\b|^Overflow when unpacking"
    r"|not implemented for '(Half|BFloat16|ComplexHalf|Float8\w*)'"
)
_NARROW = frozenset(
    dtype
    for dtype in vars(torch).values()
    if isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize < 4
)
_PRODUCTS = tagged("products_of_any_dtypes")
_TAKE_NUMBERS = tagged("takes_host_numbers")
_TAKE_NO_HOST_TENSORS = tagged("refuses_host_tensors")
_SCALED = tagged("scaled")
_NO_BOOLS = frozenset(name for name in _SCALED if "sub" in name)
_MAKES_INDICES = tagged("makes_indices")
_META_TAKES_LESS = tagged("meta_takes_less")


def refusal(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """The error that ATen raises for such arguments, whatever they contain, if it does: kernels do not check them.

    Asked of ATen's functions for device `meta`; what has none, or asks for contents, is taken to be right. Those of
    matrix products take any dtypes.
    """
    if SPARSE in Seen("", op, args, kwargs).dtypes or base_name(op) in _META_TAKES_LESS:
        return None
    dtypes = {value.dtype for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)}
    if base_name(op) in _PRODUCTS and len(dtypes) > 1:
        return RuntimeError(f"{name_of(op)}: matrices of {', '.join(sorted(map(_dtype_name, dtypes)))}")
    meta, named = tree_map(_on_meta, args), tree_map(_on_meta, kwargs)
    try:
        with _quiet(kwargs):
            op(*meta, **named)
            return _alpha_refusal(op, meta, named) or _cast_refusal(op, meta, named)
    except NotImplementedError:
        return None
    except _ERRORS as error:
        return None if "meta" in str(error) else error


def _alpha_refusal(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """Return an error for a sum or difference that ATen refuses (BinaryOps.h, `alpha_check` and `sub_check`).

    It refuses a factor of `other` that does not fit the dtype, and bools in a subtraction.
    """
    if base_name(op) not in _SCALED:
        return None
    values = bind(op, args, kwargs)
    alpha = values.get("alpha", 1)
    for first, second in _pairs(values):
        dtype = torch.result_type(first, second)
        real = dtype.is_floating_point or dtype.is_complex
        if (isinstance(alpha, bool) and dtype != torch.bool) or (isinstance(alpha, float | complex) and not real):
            return RuntimeError(f"{name_of(op)}: alpha {alpha} for {dtype}")
        if base_name(op) in _NO_BOOLS and (_is_bool(first) or _is_bool(second)):
            return RuntimeError(f"{name_of(op)}: subtraction with bools")
    return None


def _pairs(values: Mapping[str, Any]) -> Iterable[tuple[Any, Any]]:
    """Return the operands of a sum or difference, or of each that a `_foreach_` overload makes of its lists."""
    first, second = values["self"], next(values[name] for name in ("other", "scalar", "scalars") if name in values)
    if not isinstance(first, list | tuple):
        return [(first, second)]
    return zip(first, second if isinstance(second, list | tuple) else [second] * len(first), strict=False)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, torch.Tensor) and value.dtype == torch.bool)


def _cast_refusal(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """Return an error if the result of the functional form does not fit the dtype, or in place the shape, of `self`."""
    for result, destination in _results(op, args, kwargs):
        if "out" not in kwargs and result.shape != destination.shape:
            return RuntimeError(f"{name_of(op)}: result of shape {result.shape} in place of {destination.shape}")
        if not torch.can_cast(result.dtype, destination.dtype):
            return RuntimeError(f"{name_of(op)}: result of {result.dtype} can't be cast to {destination.dtype}")
    return None


def casts(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if the result has another dtype than `out`, which not all operators take."""
    if "out" not in kwargs:
        return False
    try:
        with _quiet(kwargs):
            results = _results(op, tree_map(_on_meta, args), tree_map(_on_meta, kwargs))
    except NotImplementedError:  # the size of the result depends on contents
        indices = base_name(op) in _MAKES_INDICES
        return bool(kwargs["out"].dtype != (torch.int64 if indices else args[0].dtype))
    except _ERRORS:
        return False
    return any(result.dtype != destination.dtype for result, destination in results)


def _results(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return what the functional form of a call on device `meta` makes, with the tensor that takes it."""
    forms = [plan for plan in plans(name_of(op))[1:] if plan.written and not plan.foreach and not plan.whole]
    if not forms or written(resolve(forms[0].base)):
        return []
    arguments = bind(op, args, kwargs)
    destination = arguments.pop("out") if forms[0].written == "out" else arguments[str(forms[0].written)]
    result = call(resolve(forms[0].base), base_arguments(forms[0], arguments, destination))
    return [
        (r, d)
        for r, d in zip(tree_leaves(result), tree_leaves(destination), strict=False)
        if isinstance(r, torch.Tensor) and isinstance(d, torch.Tensor)
    ]


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, torch.device):
        return torch.device("meta")
    return None if isinstance(value, torch.Generator) else value


def refusal_on_host(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception | None:
    """Return the error that ATen's CPU kernels raise for a call with tensors of the host, None if they take it.

    They are called with copies of what they write, which share memory as the tensors do, and with a copy of the
    generator, so that nothing changes. What the CPU alone lacks is no refusal: kernels, and of numbers of 16 or 8 bits
    calls that it takes in float32 and ATen's functions for device `meta` as they are. Devices keep the statistics of
    such numbers in float32, for instance.
    """
    error = _error_on_host(op, args, kwargs)
    if error is None or _TOO_LARGE.search(str(error)):
        return error
    if _CPU_LACKS.search(str(error)):
        return None
    wide_args, wide_kwargs = tree_map(_widened, (args, dict(kwargs)))
    dtypes = [getattr(value, "dtype", value) for value in tree_leaves((args, kwargs))]
    if not _NARROW.isdisjoint(d for d in dtypes if isinstance(d, torch.dtype)):
        wide = _error_on_host(op, wide_args, wide_kwargs)
        return None if wide is None and refusal(op, args, dict(kwargs)) is None else error
    return error


def _widened(value: Any) -> Any:
    """Return a tensor of 16 or 8 bits in float32, and float32 for such a dtype."""
    if isinstance(value, torch.Tensor) and value.dtype in _NARROW:
        return value.to(torch.float32).requires_grad_(value.requires_grad)
    return torch.float32 if isinstance(value, torch.dtype) and value in _NARROW else value


def _error_on_host(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception | None:
    """Return what ATen's CPU kernel raises for the call, None if it takes it. Nothing is written or drawn; it may warn.

    Of overloads that draw from the default generator, which other threads may draw from, the meta function is asked.
    """
    values = bind(op, args, kwargs)
    if torch.Tag.nondeterministic_seeded in op.tags:
        if "generator" not in values:
            return refusal(op, args, dict(kwargs))
        args, kwargs = positional(op, {**values, "generator": torch.Generator()})
    copied = _Copies(op, values)
    try:
        op(*map(copied, args), **{name: copied(value) for name, value in kwargs.items()})
    except _ERRORS as error:
        return error
    return None


def _quiet(kwargs: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Ignore warnings where `out=` has elements, of whose resizing the served call warns itself.

    Only there: the filters are of the process, and another thread may be changing them.
    """
    resizes = any(isinstance(t, torch.Tensor) and t.numel() > 0 for t in tree_leaves(kwargs.get("out")))
    return warnings.catch_warnings(action="ignore") if resizes else nullcontext()


class _Copies:
    """Copies of the memory that a call writes, and tensors in it that share it as those of the call do."""

    def __init__(self, op: OpOverload, values: Mapping[str, Any]) -> None:
        names = written(op) | (UPDATED & values.keys())
        tensors = [t for t in tree_leaves(dict(values)) if _has_storage(t)]
        targets = {id(t): t for name in names for t in tree_leaves(values[name]) if _has_storage(t)}
        self._storages = Counter(t.untyped_storage()._cdata for t in {id(t): t for t in tensors}.values())
        self._copies: dict[int, Any] = {t.untyped_storage()._cdata: None for t in targets.values()}
        self._made: dict[int, torch.Tensor] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(self, value))
        if not _has_storage(value) or value.untyped_storage()._cdata not in self._copies:
            return value
        if id(value) not in self._made:
            like = self._copied(value)
            like = like.conj() if value.is_conj() else like
            self._made[id(value)] = like.requires_grad_(value.requires_grad)
        return self._made[id(value)]

    def _copied(self, t: torch.Tensor) -> torch.Tensor:
        """Return a tensor in a copy of the whole storage; of a storage of its own the tensor's part is copied."""
        storage, like = t.untyped_storage(), torch.empty(0, dtype=t.dtype)
        if self._storages[storage._cdata] > 1:
            copy = self._copies[storage._cdata] or storage.clone()  # type: ignore[no-untyped-call]
            self._copies[storage._cdata] = copy
            return like.set_(copy, t.storage_offset(), t.shape, t.stride())
        span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
        part = like.set_(storage, t.storage_offset(), (span,), (1,)).clone()
        return part.as_strided(t.shape, t.stride())


def _has_storage(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


class Seen:
    """What decides whether a call is served: where its arguments are, and which floating dtypes they name.

    number: the first argument is a tensor by the schema, and here a number. Kernels know that of later operands alone.
    only_integers: there are tensors, and no floating dtype.
    """

    def __init__(self, device: str, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._device = device
        self.number = bool(args) and is_number(args[0]) and 0 in tensor_places(op)
        self.dtypes: set[str] = set()
        self.elsewhere = ""
        self.index: int | None = None  # of the device
        self._sparse, self._tensors = 0, 0
        self._look(args)
        self._look(kwargs.values())
        self.only_integers = self._tensors > 0 and not self.dtypes
        if kwargs.get("pin_memory"):
            self.elsewhere = PINNED
        if self._sparse > 1:
            self.elsewhere = SEVERAL
        elif self._sparse and any(map(_is_sparse, map(bind(op, args, kwargs).get, written(op)))):
            self.elsewhere = WRITTEN

    def _look(self, values: Iterable[Any]) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                self._tensors += 1
                self._device_is(value.device)
                self._dtype_is(value.dtype)
                if value._is_zerotensor():
                    self.elsewhere = NO_MEMORY
                elif value.layout is torch.sparse_coo:
                    self.dtypes.add(SPARSE)
                    self._sparse += 1
                elif value.layout is not torch.strided:
                    self.elsewhere = f"arguments of layout {_dtype_name(value.layout)}"
            elif isinstance(value, list | tuple):
                self._look(value)
            elif isinstance(value, torch.device):
                self._device_is(value)
            elif isinstance(value, torch.dtype):
                self._dtype_is(value)
            elif isinstance(value, complex):
                self.dtypes.add("complex")

    def _device_is(self, device: torch.device) -> None:
        other = device.index is not None and self.index not in (None, device.index)
        if device.type != self._device or other:
            self.elsewhere = ELSEWHERE
        self.index = device.index if self.index is None else self.index

    def _dtype_is(self, dtype: torch.dtype) -> None:
        if dtype.is_floating_point or dtype.is_complex:
            self.dtypes.add(_dtype_name(dtype))


def _is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex)


def operand_dtype(number: Any, tensors: Sequence[torch.Tensor]) -> torch.dtype:
    """Return the dtype of a 0-dim tensor that promotes beside these tensors as the number does."""
    default = torch.tensor(number).dtype  # of a float the default dtype
    if not tensors:
        return default
    widest = {torch.float32: torch.float64, torch.complex64: torch.complex128}.get(default, default)
    alone = torch.empty((), dtype=widest, device="meta")
    if all(torch.result_type(t, alone) == torch.result_type(t, number) for t in tensors):
        return widest
    return reduce(torch.promote_types, [torch.result_type(t, number) for t in tensors])


def with_tensors(
    op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], device: str
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments with tensors of the device for numbers and 0-dim tensors of the host, if ATen takes these.

    A number is replaced if the schema has a tensor in its place and it is the first argument: kernels know numbers of
    later operands. Returns None if nothing is to be replaced, or if ATen refuses the call.
    """
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    place = next((t.device for t in tensors if t.device.type == device), torch.device(device))
    moved, host = [], False
    name = base_name(op).removesuffix("_")
    mixes = name in _TAKE_NUMBERS or (torch.Tag.pointwise in op.tags and name not in _TAKE_NO_HOST_TENSORS)

    def on_device(value: Any) -> Any:
        nonlocal host
        if mixes and isinstance(value, torch.Tensor) and value.device.type == "cpu" != device and not value.dim():
            host = True
            return value.to(place)
        return value

    for i, value in enumerate(args):
        number = i == 0 and is_number(value) and 0 in tensor_places(op)
        dtype = operand_dtype(value, tensors) if number else None
        moved.append(torch.scalar_tensor(value, dtype=dtype, device=place) if number else on_device(value))
    named = {name: on_device(value) for name, value in kwargs.items()}
    if not host:
        return (tuple(moved), kwargs) if moved and moved[0] is not args[0] else None
    beside = [
        (a if b is not a and isinstance(a, torch.Tensor) else _on_meta(a)) for a, b in zip(args, moved, strict=True)
    ]
    beside_named = {k: kwargs[k] if named[k] is not kwargs[k] else _on_meta(kwargs[k]) for k in kwargs}
    try:
        op(*beside, **beside_named)
    except _ERRORS:
        return None
    return tuple(moved), named


@cache
def tensor_places(op: OpOverload) -> frozenset[int]:
    """Positions of the arguments that are tensors, or may be."""
    types = enumerate(str(a.type) for a in op._schema.arguments)
    return frozenset(i for i, text in types if text in ("Tensor", "Optional[Tensor]"))


@cache
def _dtype_name(dtype: torch.dtype | torch.layout) -> str:
    return str(dtype).removeprefix("torch.")
