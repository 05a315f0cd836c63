"""Cases beyond those recorded: other sizes, layouts and values, made from the cases that there are.

ATen is the oracle of what is valid: a variant that it refuses is left out. Integers keep to the values of the case
that a variant is made from, so that indices, offsets and targets stay valid; what was sorted stays sorted.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from traces.overloads import bind, call, resolve, written
from traces.values import unpack
from verify.cases import Case, case_of_values
from verify.tolerance import elementwise, group

MAX_ELEMENTS = 80_000  # of one argument or result of a variant of an operator that works element by element
MAX_OTHERS = 10_000  # of any other operator, unless they are in a few lines
MAX_LINES = 300  # that a kernel may give a program each, some milliseconds in Triton's interpreter
MAX_LITERAL = 1 << 14  # larger numbers of a source are no block sizes to be tried
TEMPLATES = 2  # cases of an overload that variants are made from
_SIZES = (0, 1, 7, 65, 131)
_LARGE = 70_001  # elements that 16 bits do not count
_ORDER = (5, 3, 4, 2, 0, 1)  # of the dimensions of a tensor that has six
_BLOCKS = (128, 129, 1025)  # where the source names no block sizes

Arguments = dict[str, Any]
Regime = Callable[[torch.Tensor, torch.Generator], torch.Tensor | None]

# ATen documents what these do with infinities and NaN; vectorised and plain code agree.
_SPECIAL = {
    "abs", "add", "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "atan2", "cat", "ceil", "clamp",
    "clamp_max", "clamp_min", "clone", "copysign", "cummax", "cummin", "eq", "exp", "flip", "floor", "fmax", "fmin",
    "fmod", "frac", "gather", "ge", "gt", "hardshrink", "hardsigmoid", "hardtanh", "heaviside", "index_select",
    "isclose", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "le", "leaky_relu", "log", "logical_and",
    "logical_not", "logical_or", "logical_xor", "lt", "masked_fill", "max", "maximum", "min", "minimum", "mul",
    "nan_to_num", "nansum", "ne", "neg", "nextafter", "positive", "reciprocal", "relu", "relu6", "remainder", "roll",
    "round", "rsqrt", "sign", "signbit", "softmax", "softshrink", "sqrt", "stack", "sub", "sum", "threshold", "tril",
    "triu", "trunc", "where", "xlogy",
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """A case and how it was made, such as `size 10 -> 129`, `transposed self`, `values: denormal`."""

    how: str
    case: Case


def literals(source: str) -> list[int]:
    """Integers of a source that may be block sizes, each once."""
    try:
        nodes = ast.walk(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return sorted({n for n in map(_number, nodes) if n is not None and 2 <= n <= MAX_LITERAL})


def _number(node: ast.AST) -> int | None:
    """The value of an integer, or of a power or product of two, such as 1 << 13 or 4 * 256."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = (n.value if isinstance(n, ast.Constant) else None for n in (node.left, node.right))
    if type(left) is not int or type(right) is not int or not 0 <= right <= MAX_LITERAL or abs(left) > MAX_LITERAL:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    shift = right if isinstance(node.op, ast.LShift) else right * (left == 2) if isinstance(node.op, ast.Pow) else 0
    return (left if isinstance(node.op, ast.LShift) else 1) << shift if 0 < shift < 32 else None


def extended(cases: list[Case], seed: int, source: str = "") -> list[Variant]:
    """Variants of some cases of one overload, other than these cases. source: of the kernel, for its block sizes."""
    found: dict[str, Variant] = {}
    given = {case.id for case in cases}
    sources = []
    for template in _templates(cases):
        generator = torch.Generator().manual_seed(seed)
        sources.append(_variants(template.overload, unpack(template.load()), generator, literals(source)))
    for several in itertools.zip_longest(*sources):
        for how, variant in filter(None, several):
            if _valid(cases[0].overload, variant):
                case = case_of_values(cases[0].overload, **variant)
                if case.id not in given:
                    found.setdefault(case.id, Variant(how, replace(case, signature=how)))
    return list(found.values())


def _templates(cases: list[Case]) -> list[Case]:
    """The largest case of each set of argument kinds, then others, all of which have elements."""
    sized: dict[Any, tuple[int, Case]] = {}
    for case in cases:
        packed = case.load()
        size = sum(math.prod(ref.shape) for ref in packed.tensors)
        kinds = (tuple((len(r.shape), r.dtype) for r in packed.tensors), _outline(packed.tree))
        if size > sized.get(kinds, (0, case))[0] and _valid(case.overload, unpack(packed)):
            sized[kinds] = (size, case)
    ranked = sorted(sized.values(), key=lambda pair: -pair[0])
    return [case for _, case in ranked[:TEMPLATES]]


def _outline(tree: Any) -> str:
    return str(sorted(name for name, value in tree.items() if isinstance(value, dict | list)))


def _valid(overload: str, arguments: Arguments) -> bool:
    if not all(_fits(overload, t.shape) for t in _tensors(arguments)):
        return False
    op = resolve(overload)
    try:
        copies = {k: _copied(v) if k in written(op) else v for k, v in arguments.items()}
        versions = [(t, t._version) for t in _tensors(copies)]
        with torch.no_grad():
            result = call(op, bind(op, (), copies))
        if any(t._version != version and 0 in t.stride() for t, version in versions):
            return False  # several elements of one address were written, as batch_norm does beside its schema
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return False
    results = result if isinstance(result, list | tuple) else (result,)
    made = [r for r in results if isinstance(r, torch.Tensor)]
    return all(_fits(overload, r.shape) for r in made) and not _overflows(overload, _tensors(arguments), made)


def _overflows(overload: str, given: list[torch.Tensor], made: list[torch.Tensor]) -> bool:
    """Whether finite numbers came to infinity on the way, which depends on the order in which a kernel takes them."""
    floats = [[t for t in several if t.is_floating_point()] for several in (given, made)]
    return (
        not elementwise(overload)
        and all(bool(t.isfinite().all()) for t in floats[0])
        and any(t.numel() for t in floats[0])
        and any(bool(t.isinf().any()) for t in floats[1])
    )


def _fits(overload: str, shape: Sequence[int]) -> bool:
    """Whether Triton's interpreter gets through a tensor of this shape in seconds."""
    size = math.prod(shape)
    few_lines = size <= 4 * max(shape, default=1)
    return size <= MAX_OTHERS or (size <= MAX_ELEMENTS and (elementwise(overload) or few_lines))


def _copied(value: Any) -> Any:
    return [v.clone() for v in value] if isinstance(value, list | tuple) else value.clone()


def _variants(
    overload: str, arguments: Arguments, generator: torch.Generator, blocks: list[int]
) -> Iterator[tuple[str, Arguments]]:
    """Sizes, values and layouts in turn, so that the first few hold something of each; those that tell most first."""
    sizes = _sizes(arguments, generator, blocks, elementwise(overload))
    values = _values(overload, arguments, generator)
    kinds = (sizes, values, itertools.chain(_layouts(arguments), _numbers(arguments)), values)
    for several in itertools.zip_longest(*kinds):
        yield from (variant for variant in several if variant is not None)


# -- sizes ------------------------------------------------------------------------------------------------------------


def _sizes(
    arguments: Arguments, generator: torch.Generator, blocks: list[int], each: bool
) -> Iterator[tuple[str, Arguments]]:
    """Sizes at and past the edges of blocks, the largest first: for a tensor by itself dimension by dimension, for
    several wherever the same size stands. each: the operator works element by element."""
    largest = blocks[-1] if blocks else 0
    edges = {largest - 1, largest, largest + 1, 2 * largest + 1} if blocks else set(_BLOCKS)
    wanted = sorted({*_SIZES, *edges}, reverse=True)
    tensors = {name: value for name, value in arguments.items() if isinstance(value, torch.Tensor)}
    if each and largest >= 64:
        yield f"{_LARGE} elements", _every(arguments, lambda t: _like(t, [_LARGE], generator))
    if each:
        yield "six dimensions", _every(arguments, lambda t: _like(t, [2, 3, 1, 2, 3, 2], generator).permute(_ORDER))
    if len(tensors) == len(_tensors(arguments)) == 1 and (single := next(iter(tensors))):
        shape = list(tensors[single].shape)
        lines = None if each else _lines(arguments, len(shape))
        for new, dim in itertools.product(wanted, list(reversed(range(len(shape))))[:3]):
            if lines is not None and dim not in lines and new > MAX_LINES:
                continue
            most = MAX_ELEMENTS if each else min(MAX_LINES * new, max(MAX_OTHERS, 4 * new))
            sizes = _with_size(shape, dim, new, most)
            yield f"size of dimension {dim} -> {new}", {**arguments, single: _like(tensors[single], sizes, generator)}
    present = sorted({n for t in _tensors(arguments) for n in t.shape if n > 1})
    for new in wanted if len(_tensors(arguments)) > 1 else []:
        for old in present[-2:]:
            if new != old:
                yield f"size {old} -> {new}", _mapped(arguments, {old: new}.get, generator)
    if present:
        yield "all sizes 1", _mapped(arguments, dict.fromkeys(present, 1).get, generator)
        yield "all sizes 7", _mapped(arguments, dict.fromkeys(present, 7).get, generator)
        yield "all sizes odd", _mapped(arguments, {n: 2 * n + 1 for n in present}.get, generator)


def _every(arguments: Arguments, change: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
    """Every tensor that has dimensions changed."""
    return {n: change(v) if isinstance(v, torch.Tensor) and v.dim() else v for n, v in arguments.items()}


def _lines(arguments: Arguments, rank: int) -> set[int] | None:
    """The dimensions along which the arguments say that an operator works; None if they say nothing."""
    dims = arguments.get("dim", arguments.get("dims"))
    dims = [dims] if type(dims) is int else dims
    return {d % rank for d in dims if type(d) is int} if dims and rank else None


def _with_size(shape: list[int], dim: int, new: int, most: int) -> list[int]:
    """The shape with another size of one dimension, and the others made smaller if it would have too many elements."""
    sizes, left = list(shape), most // max(new, 1)
    for d, n in enumerate(shape):
        if d != dim:
            sizes[d] = min(n, max(left, 1))
            left //= max(sizes[d], 1)
    sizes[dim] = new
    return sizes


def _mapped(arguments: Arguments, size: Callable[[int, int], int], generator: torch.Generator) -> Arguments:
    """All sizes mapped, in tensors and in lists of sizes; sums of sizes (as in split) are ATen's to refuse.

    size: a new size, from the old one twice, as a dictionary's `get` gives it.
    """

    def resized(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return _like(value, [size(n, n) for n in value.shape], generator)
        if isinstance(value, list | tuple):
            return type(value)(resized(v) for v in value)
        return value

    def sizes(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple) and ("shape" in name or "size" in name):
            return type(value)(size(n, n) if type(n) is int else resized(n) for n in value)
        return resized(value)

    return {name: sizes(name, value) for name, value in arguments.items()}


def _like(t: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Contents of another shape: floats drawn alike, all else picked from what is there."""
    if math.prod(shape) > MAX_ELEMENTS:
        return torch.empty(shape, dtype=t.dtype, device="meta")  # refused by ATen beside tensors on the CPU
    if not t.numel() or t.is_sparse:
        return t.new_empty(shape) if not math.prod(shape) else t
    flat = t.reshape(-1)
    if t.is_floating_point() or t.is_complex():
        draw = torch.randn(shape, generator=generator, dtype=torch.float64)
        wide = flat.double() if t.is_floating_point() else flat.real.double()
        finite = wide[wide.isfinite()]
        mean = float(finite.mean()) if finite.numel() else 0.0
        drawn = draw * _spread(flat.real if t.is_complex() else flat) + mean
        if finite.numel() and float(finite.min()) >= 0:  # probabilities, variances, weights
            drawn = drawn.abs().clamp(max=float(finite.max())) if float(finite.max()) <= 1 else drawn.abs()
        return drawn.to(t.dtype)
    where = torch.randint(flat.numel(), shape, generator=generator)
    picked = flat[where]
    if t.dim() == 1 and t.dtype is not torch.bool and bool((flat[1:] >= flat[:-1]).all()):
        picked = picked.sort().values
        picked[:1] = flat[:1]  # offsets begin where they began
    return picked


def _tensors(arguments: Arguments) -> list[torch.Tensor]:
    found = []
    for value in arguments.values():
        found += [v for v in (value if isinstance(value, list | tuple) else (value,)) if isinstance(v, torch.Tensor)]
    return found


# -- layouts ----------------------------------------------------------------------------------------------------------


def _layouts(arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Index tensors one smaller; each layout for all tensors at once; and the transposed one for each tensor alone."""
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor) and value.dtype in (torch.int32, torch.int64):
            for dim in [d for d in range(value.dim()) if value.shape[d] > 1]:
                yield (
                    f"{name} without its last in dimension {dim}",
                    {**arguments, name: value.narrow(dim, 0, value.shape[dim] - 1)},
                )
    for how, change in _LAYOUTS.items():
        changed = _each(arguments, change)
        if changed is not None:
            yield f"{how} arguments", changed
    names = [name for name, value in arguments.items() if isinstance(value, torch.Tensor) and value.dim() > 1]
    for name in names if len(names) > 1 else []:
        yield f"transposed {name}", {**arguments, name: _transposed(arguments[name])}


def _each(arguments: Arguments, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Arguments | None:
    seen = 0

    def changed(value: Any) -> Any:
        nonlocal seen
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            new = change(value)
            seen += new is not None
            return value if new is None else new
        if isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value):
            return type(value)(changed(v) for v in value)
        return value

    found = {name: changed(value) for name, value in arguments.items()}
    return found if seen else None


def _transposed(t: torch.Tensor) -> torch.Tensor | None:
    return t.mT.contiguous().mT if t.dim() > 1 and t.numel() else None


def _strided(t: torch.Tensor) -> torch.Tensor | None:
    """Every second element of the last dimension of a larger tensor."""
    if not t.dim() or not t.numel():
        return None
    wide = torch.repeat_interleave(t, 2, dim=-1)
    return wide[..., ::2]


def _offset(t: torch.Tensor) -> torch.Tensor | None:
    """The same after three elements of something else."""
    if not t.numel():
        return None
    whole = torch.cat([t.new_zeros(3), t.reshape(-1)])
    return whole[3:].view(t.shape)


def _expanded(t: torch.Tensor) -> torch.Tensor | None:
    """The first index of the first dimension, repeated with stride 0."""
    return t[:1].expand(t.shape) if t.dim() and t.shape[0] > 1 else None


def _channels_last(t: torch.Tensor) -> torch.Tensor | None:
    return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else None


_LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "transposed": _transposed,
    "strided": _strided,
    "offset": _offset,
    "expanded": _expanded,
    "channels-last": _channels_last,
}

# -- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Other values of the arguments that are no tensors; ATen refuses those that make no sense."""
    floats = [n for n, value in arguments.items() if type(value) is float and n not in ("eps", "p")]
    for factor in (2.5, 0.5) if floats else ():
        yield f"numbers times {factor}", arguments | {n: arguments[n] * factor for n in floats}
    if floats:
        yield "numbers 1.5", arguments | dict.fromkeys(floats, 1.5)
    if "dtype" in arguments and arguments["dtype"] is None:
        yield "dtype float64", {**arguments, "dtype": torch.float64}
    if "beta" in arguments and isinstance(arguments.get("self"), torch.Tensor):
        yield "beta 0 times NaN", {**arguments, "beta": 0, "self": torch.full_like(arguments["self"], math.nan)}


# -- values -----------------------------------------------------------------------------------------------------------


def _values(overload: str, arguments: Arguments, generator: torch.Generator) -> Iterator[tuple[str, Arguments]]:
    base = overload.removeprefix("aten::").partition(".")[0].strip("_")
    regimes = dict(_REGIMES)
    if base in _SPECIAL or group(overload) == "exact":
        regimes = {"NaN and infinities": _special, **regimes, **({"huge": _huge} if elementwise(overload) else {})}
    for how, change in regimes.items():
        changed = _each(arguments, _on_floats(change, generator))
        if changed is not None:
            yield f"values: {how}", changed


def _on_floats(change: Regime, generator: torch.Generator) -> Callable[[torch.Tensor], torch.Tensor | None]:
    def changed(t: torch.Tensor) -> torch.Tensor | None:
        return change(t, generator) if t.is_floating_point() and t.numel() and t.dtype.itemsize > 1 else None

    return changed


def _special(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Half of the elements: each value at places of its own in each tensor, so that all pairs of values meet."""
    new = t.clone(memory_format=torch.contiguous_format).reshape(-1)
    values = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 0.0], dtype=t.dtype)
    places = torch.randperm(new.numel(), generator=generator)[: (new.numel() + 1) // 2]
    new[places] = values.repeat(len(places) // len(values) + 1)[: len(places)]
    return new.view(t.shape)


def _extreme(t: torch.Tensor) -> torch.Tensor:
    flat = t.reshape(-1)
    return flat[flat.abs().nan_to_num(0.0, posinf=0.0).argmax()]


def _huge(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Of every magnitude up to the largest number of the dtype."""
    exponents = torch.rand(t.shape, generator=generator, dtype=torch.float64) * math.log2(torch.finfo(t.dtype).max)
    return (t.sign() * torch.exp2(exponents)).to(t.dtype)


def _halves(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Few different values, multiples of 1/2: ties, zeros, halves to be rounded, whole quotients."""
    low = 0 if float(t.min()) >= 0 else -5
    return (torch.randint(low, 6, t.shape, generator=generator) / 2).to(t.dtype)


def _spread(t: torch.Tensor) -> float:
    """Standard deviation of the finite elements, 1 where that is 0."""
    finite = t.double()[t.isfinite()]
    return float(finite.std(correction=0)) or 1.0 if finite.numel() else 1.0


def _shuffled(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return t.reshape(-1)[torch.randperm(t.numel(), generator=generator)].view(t.shape)


_REGIMES: dict[str, Regime] = {
    "multiples of 1/2": _halves,
    "large": lambda t, g: t * 64,
    "other signs": lambda t, g: -t,
    "shuffled": _shuffled,
    "zeros": lambda t, g: torch.zeros_like(t),
    "repeated": lambda t, g: torch.where(torch.rand(t.shape, generator=g) < 0.5, t.reshape(-1)[0], _extreme(t)),
    "large mean": lambda t, g: t + 64 * _spread(t),  # cancels in E[x^2] - E[x]^2
    "sorted": lambda t, g: t.reshape(-1).sort().values.view(t.shape),
    "small": lambda t, g: t * 1e-3,
    "denormal": lambda t, g: (t.double() * torch.finfo(t.dtype).tiny / 4).to(t.dtype),
}
