"""Other numbers and values for a call's arguments, with unchanged sizes; see `verify.cases.extended`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from traces.overloads import resolve
from traces.subgraphs import is_subgraph
from verify.cases.arguments import MAX_ELEMENTS, Arguments, tensors
from verify.cases.layouts import each
from verify.operators import elementwise, takes_infinities

Regime = Callable[[torch.Tensor, torch.Generator], torch.Tensor | None]

# -- numbers ----------------------------------------------------------------------------------------------------------


def special_numbers(overload: str, arguments: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield factors that change the meaning of tensors: 0 beside a tensor with NaN or with some infinities."""
    for factor in _factors(overload, arguments) if takes_infinities(overload) else ():
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype.itemsize > 1:
                yield f"{factor} 0, {name} of NaN", {**arguments, factor: 0, name: torch.full_like(value, math.nan)}
                special = _sprinkled(math.inf, -math.inf, share=1 / 16)(value, torch.Generator().manual_seed(0))
                yield f"{factor} 0, infinities in {name}", {**arguments, factor: 0, name: special}


def _factors(overload: str, arguments: Arguments) -> list[str]:
    """Return the arguments with the schema type Number, such as `alpha`."""
    if is_subgraph(overload):
        return []
    numbers = [a.name for a in resolve(overload)._schema.arguments if isinstance(a.real_type, torch.NumberType)]
    return [name for name in numbers if type(arguments.get(name)) in (int, float)]


# -- values -----------------------------------------------------------------------------------------------------------


def values(
    overload: str, arguments: Arguments, generator: torch.Generator, constants: Sequence[float] = ()
) -> Iterator[tuple[str, Arguments]]:
    """Yield the call with other contents in all floating tensors, in complex ones, and in each integer tensor.

    ATen decides which contents are valid. `constants` are numbers in the kernel's source.
    """
    regimes = {**(_SPECIAL if takes_infinities(overload) else {}), **_REGIMES}
    if constants:
        regimes = {"numbers of the source": partial(_near, constants), **regimes}
    regimes |= _OF_ELEMENTS if elementwise(overload) else {}
    for how, change in regimes.items():
        changed = each(arguments, _on_floats(change, generator))
        if changed is not None:
            yield f"values: {how}", changed
    for how, change in {**_OF_PARTS, **(_INFINITE_PARTS if elementwise(overload) else {})}.items():
        changed = each(arguments, _on_parts(change, generator))
        if changed is not None:
            yield f"values: {how}", changed
    for bits in _PAST_FLOATS:
        changed = each(arguments, partial(_past, bits))
        if changed is not None:
            yield f"values: integers past 2^{bits}", changed
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor) and value.dtype in _INDICES and value.numel():
            for size in sorted({n for t in tensors(arguments) for n in t.shape if n > int(value.max())}):
                some = torch.rand(value.shape, generator=generator) < 0.5  # noqa: PLR2004 - half of them
                yield (
                    f"values: {name} counted from the end of {size}",
                    {
                        **arguments,
                        name: torch.where(some & (value >= 0), value - size, value),
                    },
                )
        if isinstance(value, torch.Tensor) and value.dtype in _INTEGERS and value.numel():
            whole = _whole_range(value, generator)
            yield f"values: whole range of {name}", {**arguments, name: whole}
            yield f"values: whole range of {name} but 0", {**arguments, name: torch.where(whole == 0, 3, whole)}


def _on_floats(change: Regime, generator: torch.Generator) -> Callable[[torch.Tensor], torch.Tensor | None]:
    def changed(t: torch.Tensor) -> torch.Tensor | None:
        return change(t, generator) if t.is_floating_point() and t.numel() and t.dtype.itemsize > 1 else None

    return changed


def _on_parts(change: Regime, generator: torch.Generator) -> Callable[[torch.Tensor], torch.Tensor | None]:
    """Return the regime for complex tensors, applied to pairs [..., 2] with their real and imaginary parts."""

    def changed(t: torch.Tensor) -> torch.Tensor | None:
        if not t.is_complex() or not t.numel():
            return None
        new = change(torch.view_as_real(t.resolve_conj().resolve_neg()), generator)
        return None if new is None else torch.view_as_complex(new.contiguous())

    return changed


def _some_zeros(parts: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Set both parts of some complex numbers to 0."""
    is_zero = torch.rand(parts.shape[:-1], generator=generator) < 0.25
    is_zero.view(-1)[:1] = True
    return parts.masked_fill(is_zero.unsqueeze(-1), 0.0)


def _sprinkled(*values: float, share: float) -> Regime:
    """Return a regime that replaces a share of the elements, at least one, by the given values.

    Each tensor uses its own positions, so that all pairs of values occur in combination.
    """

    def changed(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        new = t.clone(memory_format=torch.contiguous_format).reshape(-1)
        places = torch.randperm(new.numel(), generator=generator)[: math.ceil(new.numel() * share)]
        new[places] = torch.tensor(values, dtype=t.dtype).repeat(len(places) // len(values) + 1)[: len(places)]
        return new.view(t.shape)

    return changed


def _past(bits: int, t: torch.Tensor) -> torch.Tensor | None:
    """Return integers beyond those that a floating dtype holds, at their old distances from each other."""
    fits = t.dtype in _INDICES and bits < torch.iinfo(t.dtype).bits - 1
    return t + 2**bits if fits and t.numel() and int(t.abs().max()) < 2 ** (bits - 1) else None


def _near(constants: Sequence[float], t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return numbers of the source and their neighbours, rounded to the dtype, at random positions."""
    of_dtype = torch.tensor(constants, dtype=torch.float64).to(t.dtype)
    up, down = (torch.nextafter(of_dtype, torch.full_like(of_dtype, end)) for end in (math.inf, -math.inf))
    near = torch.cat([of_dtype, up, down])
    near = near[near.isfinite()]
    if not near.numel():
        return t
    return near[torch.randint(near.numel(), t.shape, generator=generator)]


def _whole_range(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return random integers over the whole range, including the smallest and the largest."""
    info = torch.iinfo(t.dtype)
    drawn = torch.randint(-(2**63), 2**63 - 1, t.shape, generator=generator).to(t.dtype).reshape(-1)
    ends = torch.tensor([info.max, info.min, 0, 1, -1 if info.min else 1], dtype=t.dtype)[: drawn.numel()]
    drawn[: len(ends)] = ends
    return drawn[torch.randperm(drawn.numel(), generator=generator)].view(t.shape)


def _extreme(t: torch.Tensor) -> torch.Tensor:
    flat = t.reshape(-1)
    return flat[flat.abs().nan_to_num(0.0, posinf=0.0).argmax()]


def _huge(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return numbers with random magnitudes up to the largest number in the dtype."""
    exponents = torch.rand(t.shape, generator=generator, dtype=torch.float64) * math.log2(torch.finfo(t.dtype).max)
    return (t.sign() * torch.exp2(exponents)).to(t.dtype)


def _wide(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return magnitudes from a millionth to a million, within the dtype's range.

    They exceed the range in which functions need no argument reduction.
    """
    exponents = torch.rand(t.shape, generator=generator, dtype=torch.float64) * 40 - 20
    return (t.sign() * torch.exp2(exponents)).to(t.dtype)


def _halves(t: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return few different values, multiples of 1/2: ties, zeros, halves to round, and integer quotients."""
    low = 0 if float(t.min()) >= 0 else -5
    return (torch.randint(low, 6, t.shape, generator=generator) / 2).to(t.dtype)


def spread(t: torch.Tensor) -> float:
    """Return the standard deviation of the finite elements, or 1 if it is 0."""
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
    "large mean": lambda t, g: t + 64 * spread(t),  # cancels in E[x^2] - E[x]^2
    "sorted": lambda t, g: t.reshape(-1).sort().values.view(t.shape),
    "small": lambda t, g: t * 1e-3,
    "denormal": lambda t, g: (t.double() * torch.finfo(t.dtype).tiny / 4).to(t.dtype),
}


_SPECIAL: dict[str, Regime] = {
    "NaN and infinities": _sprinkled(math.nan, -math.nan, math.inf, -math.inf, -0.0, 0.0, share=0.5),
    "some infinities": _sprinkled(math.inf, -math.inf, share=1 / 16),
    "minus infinities": _sprinkled(-math.inf, share=0.3),  # as masks produce them
    "zeros of both signs": _sprinkled(-0.0, 0.0, share=0.5),
}
_OF_PARTS: dict[str, Regime] = {
    "complex zeros": _some_zeros,
    "zeros of both signs in complex parts": _sprinkled(-0.0, 0.0, share=0.5),
}
_INFINITE_PARTS: dict[str, Regime] = {"infinite complex parts": _sprinkled(math.inf, -math.inf, share=1 / 16)}
# Sums over these depend on the order of addition.
_OF_ELEMENTS: dict[str, Regime] = {"huge": _huge, "of all magnitudes": _wide}
_PAST_FLOATS = 26, 55  # log2 of integers that float32 and float64 hold to multiples of 4
_INDICES = frozenset({torch.int32, torch.int64})
_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})


# -- shapes -----------------------------------------------------------------------------------------------------------


def like(t: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    """Return contents for another shape: floats with a similar distribution, all else picked from existing elements.

    If the rank stays the same, the dimensions keep their order in memory.
    """
    if t.is_sparse or t.dim() != len(shape) or t.is_contiguous():
        return _random_like(t, shape, generator)
    order = sorted(range(t.dim()), key=t.stride, reverse=True)
    ordered = t.permute(order).contiguous()
    drawn = _random_like(ordered, [shape[d] for d in order], generator)
    return drawn.permute([order.index(d) for d in range(t.dim())])


def _random_like(t: torch.Tensor, shape: list[int], generator: torch.Generator) -> torch.Tensor:
    if math.prod(shape) > MAX_ELEMENTS:
        return torch.empty(shape, dtype=t.dtype, device="meta")  # too large to be tried
    if not t.numel() or t.is_sparse:
        return t.new_empty(shape) if not math.prod(shape) else t
    if t.is_complex():
        return torch.complex(*(_random_like(part.double(), shape, generator) for part in (t.real, t.imag))).to(t.dtype)
    flat = t.reshape(-1)
    if t.is_floating_point():
        draw = torch.randn(shape, generator=generator, dtype=torch.float64)
        wide = flat.double()
        finite = wide[wide.isfinite()]
        mean = float(finite.mean()) if finite.numel() else 0.0
        drawn = draw * spread(flat) + mean
        if finite.numel() and float(finite.min()) >= 0:  # probabilities, variances, weights
            drawn = drawn.abs().clamp(max=float(finite.max())) if float(finite.max()) <= 1 else drawn.abs()
        return drawn.to(t.dtype)
    indices = torch.randint(flat.numel(), shape, generator=generator)
    picked = flat[indices]
    if t.dim() == len(shape) == 1 and t.dtype in _INTEGERS and bool((flat[1:] >= flat[:-1]).all()):
        picked = picked.sort().values
        picked[:1] = flat[:1]  # offsets keep their first value
    return picked
