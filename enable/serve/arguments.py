"""Inspect a call's arguments and decide if a kernel can serve them.

The server and its decisions use this module. It finds arguments on other devices or in unsupported layouts, predicts
ATen's errors by its meta functions, and turns host numbers into device tensors.
"""

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
NO_MEMORY = "a zero tensor, which has no memory"  # torch._efficientzerotensor: derivatives that are zero everywhere
SPARSE = "sparse_coo"  # listed among the dtypes of calls with a sparse tensor, as in verdicts
SEVERAL = "several sparse tensors"
WRITTEN = (
    "a sparse tensor that is written"  # a kernel allocates a new result and cannot replace the parts of an existing one
)
# Operators and their Python meta functions raise these for invalid arguments.
_ERRORS = (RuntimeError, LookupError, ValueError, TypeError, ArithmeticError, AttributeError, AssertionError)
_TOO_LARGE = re.compile(r"without overflow|out of bounds")  # numbers and indices are invalid for every dtype
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
    """Return the error that ATen raises for these arguments, or None if it accepts them.

    Kernels do not check arguments, so ATen's functions for device `meta` do, which read no contents. A call passes if
    its operator has no meta function, or one that needs contents. Sparse calls and operators tagged `meta_takes_less`
    pass too. Meta functions of matrix products accept any dtypes, so mixed dtypes are refused here.
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

    ATen refuses an `alpha` (the factor for `other`) that does not fit the dtype, and bools in a subtraction.
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
    """Return the operand pairs: one for a plain sum or difference, one per list element for a `_foreach_` overload."""
    first, second = values["self"], next(values[name] for name in ("other", "scalar", "scalars") if name in values)
    if not isinstance(first, list | tuple):
        return [(first, second)]
    return zip(first, second if isinstance(second, list | tuple) else [second] * len(first), strict=False)


def _is_bool(value: Any) -> bool:
    """Return True for a Python bool or a bool tensor."""
    return isinstance(value, bool) or (isinstance(value, torch.Tensor) and value.dtype == torch.bool)


def _cast_refusal(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception | None:
    """Return an error if the functional form's result cannot be cast to the destination dtype.

    An in-place form also requires that the result has the shape of `self`.
    """
    for result, destination in _results(op, args, kwargs):
        if "out" not in kwargs and result.shape != destination.shape:
            return RuntimeError(f"{name_of(op)}: result of shape {result.shape} in place of {destination.shape}")
        if not torch.can_cast(result.dtype, destination.dtype):
            return RuntimeError(f"{name_of(op)}: result of {result.dtype} can't be cast to {destination.dtype}")
    return None


def casts(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if the result has another dtype than `out`; not every kernel supports that."""
    if "out" not in kwargs:
        return False
    try:
        with _quiet(kwargs):
            results = _results(op, tree_map(_on_meta, args), tree_map(_on_meta, kwargs))
    except NotImplementedError:  # the result size depends on contents, so the meta function cannot run
        indices = base_name(op) in _MAKES_INDICES
        return bool(kwargs["out"].dtype != (torch.int64 if indices else args[0].dtype))
    except _ERRORS:
        return False
    return any(result.dtype != destination.dtype for result, destination in results)


def _results(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return pairs (result, destination) from running the call's functional form on device `meta`."""
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
    """Return a meta tensor for a tensor, device `meta` for a device, None for a generator, and others unchanged."""
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, torch.device):
        return torch.device("meta")
    return None if isinstance(value, torch.Generator) else value


def refusal_on_host(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception | None:
    """Return the error that ATen's CPU kernels raise for a call with host tensors, or None if they accept it.

    The CPU kernels get copies of the tensors that they write, which share memory as the originals do, and a copy of
    the generator. A gap in the CPU backend is no refusal: a missing CPU kernel, or a call with 16-bit or 8-bit floats
    that the CPU accepts in float32 and ATen's meta functions accept as it is.
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
    """Convert a 16-bit or 8-bit float tensor to float32, and such a dtype to torch.float32."""
    if isinstance(value, torch.Tensor) and value.dtype in _NARROW:
        return value.to(torch.float32).requires_grad_(value.requires_grad)
    return torch.float32 if isinstance(value, torch.dtype) and value in _NARROW else value


def _error_on_host(op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception | None:
    """Return the error from ATen's CPU kernel for the call, or None. It writes and draws nothing, but may warn.

    An overload that draws from the default generator is checked by its meta function, because other threads may
    draw from that generator.
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
    """Suppress warnings if `out=` has elements, because the served call warns about the resize itself.

    Other calls leave the filters alone: they belong to the process, and another thread may be changing them.
    """
    resizes = any(isinstance(t, torch.Tensor) and t.numel() > 0 for t in tree_leaves(kwargs.get("out")))
    return warnings.catch_warnings(action="ignore") if resizes else nullcontext()


class _Copies:
    """Maps the tensors of a call to tensors in copies of the memory that the call writes.

    The copies share memory with each other as the originals do. Tensors in memory that is not written pass unchanged.
    """

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
        """Return a tensor in a copy of its storage; copy only the tensor's part if nothing else shares the storage."""
        storage, like = t.untyped_storage(), torch.empty(0, dtype=t.dtype)
        if self._storages[storage._cdata] > 1:
            copy = self._copies[storage._cdata] or storage.clone()  # type: ignore[no-untyped-call]
            self._copies[storage._cdata] = copy
            return like.set_(copy, t.storage_offset(), t.shape, t.stride())
        span = 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) if t.numel() else 0
        part = like.set_(storage, t.storage_offset(), (span,), (1,)).clone()
        return part.as_strided(t.shape, t.stride())


def _has_storage(value: Any) -> bool:
    """Return True for a strided tensor."""
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


class Seen:
    """The facts that decide if a call is served: its tensors' locations and its floating dtypes.

    Attributes:
        number: True if the schema's first argument is a tensor and the call passes a number. Kernels accept
            numbers only for later operands.
        dtypes: Floating and complex dtype names; includes SPARSE if a tensor is sparse.
        elsewhere: The reason why no kernel can serve the call, or empty.
        index: Device index, or None if no argument names one.
        only_integers: True if there are tensors and no floating dtype.
    """

    def __init__(self, device: str, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._device = device
        self.number = bool(args) and is_number(args[0]) and 0 in tensor_places(op)
        self.dtypes: set[str] = set()
        self.elsewhere = ""
        self.index: int | None = None  # the device index
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
    """Return True for a Python bool, int, float or complex."""
    return isinstance(value, bool | int | float | complex)


def operand_dtype(number: Any, tensors: Sequence[torch.Tensor]) -> torch.dtype:
    """Return the dtype for a 0-dim tensor that promotes beside these tensors as the number does."""
    default = torch.tensor(number).dtype  # a float gets the default dtype
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
    """Replace numbers and 0-dim host tensors by tensors on the device, if ATen accepts the call.

    A number is replaced only if it is the first argument and the schema has a tensor there, because kernels accept
    numbers for later operands. A 0-dim host tensor is replaced if the operator may mix it with device tensors.

    Args:
        op: Overload to call.
        args: Positional arguments.
        kwargs: Keyword arguments.
        device: Device type that the kernels run on.

    Returns:
        The new positional and keyword arguments. None if nothing is to be replaced or ATen refuses the call.
    """
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    target = next((t.device for t in tensors if t.device.type == device), torch.device(device))
    moved, host = [], False
    name = base_name(op).removesuffix("_")
    mixes = name in _TAKE_NUMBERS or (torch.Tag.pointwise in op.tags and name not in _TAKE_NO_HOST_TENSORS)

    def on_device(value: Any) -> Any:
        nonlocal host
        if mixes and isinstance(value, torch.Tensor) and value.device.type == "cpu" != device and not value.dim():
            host = True
            return value.to(target)
        return value

    for i, value in enumerate(args):
        number = i == 0 and is_number(value) and 0 in tensor_places(op)
        dtype = operand_dtype(value, tensors) if number else None
        moved.append(torch.scalar_tensor(value, dtype=dtype, device=target) if number else on_device(value))
    named = {name: on_device(value) for name, value in kwargs.items()}
    if not host:
        return (tuple(moved), kwargs) if moved and moved[0] is not args[0] else None
    meta_args = [
        (a if b is not a and isinstance(a, torch.Tensor) else _on_meta(a)) for a, b in zip(args, moved, strict=True)
    ]
    meta_kwargs = {k: kwargs[k] if named[k] is not kwargs[k] else _on_meta(kwargs[k]) for k in kwargs}
    try:
        op(*meta_args, **meta_kwargs)
    except _ERRORS:
        return None
    return tuple(moved), named


@cache
def tensor_places(op: OpOverload) -> frozenset[int]:
    """Return the positions of arguments with type Tensor or Optional[Tensor]."""
    types = enumerate(str(a.type) for a in op._schema.arguments)
    return frozenset(i for i, text in types if text in ("Tensor", "Optional[Tensor]"))


@cache
def _dtype_name(dtype: torch.dtype | torch.layout) -> str:
    """Return the name without the "torch." prefix."""
    return str(dtype).removeprefix("torch.")
