"""Speed up Triton's interpreter by caching types, shapes and signatures.

The results do not change. A cached entry is the interpreter's own result for the same types; all other cases go
through the original code. A kernel over a few hundred elements takes half of the time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any


@cache
def quicken() -> None:
    """Speed up the interpreter in this process; call it before the language is patched."""
    from triton.runtime import interpreter

    core = interpreter.tl.core
    _quicken_types(core)
    _quicken_tensors(core)
    _quicken_semantic(type(interpreter.interpreter_semantic), core)
    _quicken_calls(interpreter)


def arguments_of(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Bind arguments like inspect.getcallargs, for functions without `*args` and `**kwargs`."""
    spec = specification(fn)
    names = dict.fromkeys((*spec.args, *spec.kwonlyargs))
    defaults = dict(zip(reversed(spec.args), reversed(spec.defaults or ()), strict=False)) | (spec.kwonlydefaults or {})
    positional = dict(zip(spec.args, args, strict=False))
    if (
        len(args) > len(spec.args)
        or positional.keys() & kwargs.keys()
        or names.keys() - {*positional, *kwargs, *defaults}
    ):
        return inspect.getcallargs(fn, *args, **kwargs)  # raises an error that describes the problem
    bound = {**defaults, **positional, **kwargs}
    return {name: bound[name] for name in names}


@lru_cache(maxsize=512)
def specification(fn: Callable[..., Any]) -> inspect.FullArgSpec:
    """Return the cached argument specification of a function."""
    return inspect.getfullargspec(fn)


def _quicken_types(core: Any) -> None:
    unwrap, equal, block = core._unwrap_if_constexpr, core.dtype.__eq__, core.block_type.__init__
    kinds = (core.tensor, int, float, bool, str, type(None), core.dtype, core.pointer_type, core.block_type)
    plain, constexpr = frozenset(kinds), core.constexpr
    blocks: dict[tuple[Any, ...] | None, dict[str, Any]] = {}

    def unwrap_if_constexpr(value: Any) -> Any:
        kind = type(value)
        if kind in plain:
            return value
        return value.value if kind is constexpr else unwrap(value)

    def equals(self: Any, other: Any) -> Any:
        return self is other or (self.name == other.name if type(other) is core.dtype else equal(self, other))

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = shape.values if type(shape) is core.tuple else shape
        cacheable = type(sizes) is list and all(type(size) is int for size in sizes)
        key = (type(element_ty), element_ty.name, *sizes) if cacheable else None
        known = blocks.get(key)
        if known is not None:
            vars(self).update(known, element_ty=element_ty)
            return
        block(self, element_ty, shape)
        if key is not None:
            blocks[key] = {k: v for k, v in vars(self).items() if k != "element_ty"}

    core._unwrap_if_constexpr = unwrap_if_constexpr
    core.dtype.__eq__ = equals
    core.block_type.__init__ = block_type


def _quicken_tensors(core: Any) -> None:
    original, shapes = core.tensor.__init__, dict[str, dict[str, Any]]()

    def tensor(self: Any, handle: Any, type: Any) -> None:
        known = shapes.get(type.name)
        if known is None:
            original(self, handle, type)
            shapes[type.name] = {k: v for k, v in vars(self).items() if k not in ("handle", "type", "dtype")}
        else:
            vars(self).update(known, handle=handle, type=type, dtype=type.scalar)

    core.tensor.__init__ = tensor


def _quicken_semantic(semantic: Any, core: Any) -> None:
    promoted, broadcast, cast = semantic.computation_type_impl, semantic.broadcast_impl_value, semantic.cast
    types: dict[tuple[Any, ...], Any] = {}

    def computation_type(self: Any, a: Any, a_is_scalar: bool, b: Any, b_is_scalar: bool, div_or_mod: bool) -> Any:
        key = a.name, a_is_scalar, b.name, b_is_scalar, div_or_mod
        known = types.get(key)
        if known is None:
            known = types[key] = promoted(self, a, a_is_scalar, b, b_is_scalar, div_or_mod)
        return known

    def broadcast_values(self: Any, lhs: Any, rhs: Any) -> Any:
        left, right = lhs.type, rhs.type
        if left.is_block() == right.is_block() and (not left.is_block() or left.shape.values == right.shape.values):
            return lhs, rhs
        return broadcast(self, lhs, rhs)

    def cast_to(self: Any, value: Any, to: Any, rounding: Any = None) -> Any:
        if rounding is None and type(to) is core.dtype and value.dtype.name == to.name:
            return value
        return cast(self, value, to, rounding)

    semantic.computation_type_impl = computation_type
    semantic.broadcast_impl_value = broadcast_values
    semantic.cast = cast_to


def _quicken_calls(interpreter: Any) -> None:
    """Cache NumPy's types and the constexpr parameters of kernels, and wrap the language's functions cheaply."""
    numpy_type, types = interpreter._get_np_dtype, dict[str, Any]()
    executor, constants = interpreter.GridExecutor.__init__, dict[Any, list[str]]()
    wrapper = interpreter.tl.core.builtin(lambda: None).__code__  # shared by all functions of the language

    def get_np_dtype(dtype: Any) -> Any:
        known = types.get(dtype.name)
        if known is None:
            known = types[dtype.name] = numpy_type(dtype)
        return known

    def patch_attr(owner: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
        semantic = interpreter.interpreter_semantic
        function = member.__wrapped__ if getattr(member, "__code__", None) is wrapper else member

        def call(*args: Any, **kwargs: Any) -> Any:
            kwargs["_semantic"] = semantic
            return function(*args, **kwargs)

        scope.set_attr(owner, name, call)

    def execute(self: Any, fn: Any, arg_names: Any, grid: Any, pre_run_hooks: Any = ()) -> None:
        if fn in constants:
            self.fn, self.arg_names, self.grid, self.pre_run_hooks = fn, arg_names, grid, pre_run_hooks
            self.constexprs = constants[fn]
            return
        executor(self, fn, arg_names, grid, pre_run_hooks)
        constants[fn] = self.constexprs

    interpreter._get_np_dtype = get_np_dtype
    interpreter._patch_attr = patch_attr
    interpreter.GridExecutor.__init__ = execute
