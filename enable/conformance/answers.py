"""What a call answers, and whether two answers to the same call are the same.

A `Probe` is one call with inputs of its own. It is made twice: PyTorch answers the first natively, the registration
answers the second, and `differences` compares the two answers. No property of an operator is asserted by itself: the
native answer is the specification, exceptions included.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.testing._comparison import default_tolerances
from torch.utils._pytree import tree_flatten, tree_leaves

SEED = 1234
SLACK = 4.0  # times the native error against the reference in float64 that a kernel's error may be
WIDE = {torch.float16, torch.bfloat16, torch.float32, torch.complex32, torch.complex64}
BROKEN = re.compile(
    r"illegal memory access|device-side assert|unspecified launch failure|misaligned address|an illegal"
)
NO_KERNEL = re.compile("Could not run 'aten::")  # PyTorch has no kernel on the device: there is nothing to keep
RESIZED = re.compile("resized|number of elements in the out tensor")
_NUMBERS = re.compile(r"0x[0-9a-f]+")

Tolerance = tuple[float, float]  # relative, absolute


class DeviceLost(Exception):
    """The GPU context is broken: no later call of this process can be trusted."""


@dataclass
class Probe:
    """One call of a check.

    label: which call it is. inputs: tensors that the call may write or alias. undefined: the values of its result are
    not defined. warned: a warning that `out` was resized is part of the answer. elementwise: no element of its result
    depends on several, so that each is as accurate as its own size, and not as the largest one, lets expect. like: the
    label of a probe that makes the same call.
    """

    check: str
    label: str
    call: Callable[[], Any]
    inputs: Any = ()
    undefined: bool = False
    warned: bool = False
    elementwise: bool = False
    like: str = ""


@dataclass
class Response:
    """error: type and message of the exception. drew: the call drew random numbers. resized: it warned of `out`."""

    result: list[Any] = field(default_factory=list)
    structure: str = ""
    inputs: list[torch.Tensor] = field(default_factory=list)
    aliases: frozenset[tuple[int, int, bool]] = frozenset()
    error: tuple[str, str] | None = None
    drew: bool = False
    resized: bool = False


class Difference(NamedTuple):
    """kind: raises, accepts, error, structure, geometry, values, alias or warning."""

    kind: str
    detail: str


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return all tensors of a tree, in order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def answer(probe: Probe, device: str, native: bool = True) -> Response:
    """Make the call, with the generators in a fixed state. native: note whether it draws random numbers, which takes
    operators. Raises DeviceLost if the call broke the GPU context."""
    torch.manual_seed(SEED)
    before = _generator(device) if native else None
    inputs = tensors(probe.inputs)
    storages = [_storage(t) for t in inputs]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = probe.call()
            if device == "cuda":
                torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001 - every exception is an answer
            message = _NUMBERS.sub("0x", str(error)).strip()
            if BROKEN.search(message):
                raise DeviceLost(f"{type(error).__name__}: {message[:300]}") from error
            return Response(inputs=inputs, error=(type(error).__name__, message))
    leaves, spec = tree_flatten(result)
    pairs = [(t, i) for i, t in enumerate(leaves) if isinstance(t, torch.Tensor)]
    shared = {
        (i, j, t is inputs[j]) for t, i in pairs for j, s in enumerate(storages) if s is not None and _storage(t) == s
    }
    drew = before is not None and not torch.equal(before, _generator(device))
    resized = probe.warned and any(RESIZED.search(str(w.message)) for w in caught)
    return Response(leaves, str(spec), inputs, frozenset(shared), None, drew, resized)


def _generator(device: str) -> Any:
    """Return the states of the default generators of the CPU and the device."""
    states = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if device == "cuda" else [])]
    return torch.cat(states)


def _storage(tensor: torch.Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else None


def differences(
    probe: Probe,
    native: Response,
    ours: Response,
    tolerance: Callable[[torch.dtype], Tolerance],
    wide: Callable[[], Response],
) -> Iterator[Difference]:
    """Compare two answers. wide: PyTorch's native answer in float64, asked only where values differ."""
    if native.error or ours.error:
        yield from _error_difference(native, ours)
        return
    if native.structure != ours.structure or len(native.result) != len(ours.result):
        yield Difference("structure", f"{ours.structure} instead of {native.structure}")
        return
    if native.aliases != ours.aliases:
        now, was = sorted(ours.aliases - native.aliases), sorted(native.aliases - ours.aliases)
        yield Difference("alias", f"(result, input, same object): {now} too many, {was} missing")
    if native.resized != ours.resized:
        yield Difference("warning", f"{'a' if ours.resized else 'no'} warning that the output was resized")
    least = narrowest(native.inputs)
    reference: list[Response] = []
    for part in ("result", "inputs"):
        for i, (a, b) in enumerate(zip(getattr(native, part), getattr(ours, part), strict=True)):
            where = f"{part} {i}"
            if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
                same = type(a) is type(b) and (a is b or a == b or a != a or probe.undefined or native.drew)
                if not same and not _near(a, b):
                    yield Difference("values", f"{where}: {b!r:.60} instead of {a!r:.60}")
                continue
            if geometry(a) != geometry(b):
                yield Difference("geometry", f"{where}: {_changed(geometry(a), geometry(b))}")
            elif not probe.undefined and not native.drew:
                bounds = [tolerance(dtype) for dtype in (a.dtype, *least)]
                bound = max(r for r, _ in bounds), max(t for _, t in bounds)
                detail = _values(a, b, bound, probe.elementwise, partial(_leaf, reference, wide, part, i))
                if detail:
                    yield Difference("values", f"{where}: {detail}")


def narrowest(inputs: list[torch.Tensor]) -> list[torch.dtype]:
    """Return the floating dtypes in which the inputs may be computed with: a wider result is no more accurate.

    Integers become the default dtype.
    """
    integers = [torch.get_default_dtype() for t in inputs if not (t.is_floating_point() or t.is_complex())]
    return list({t.dtype for t in inputs if t.dtype in WIDE} | {*integers})


def _error_difference(native: Response, ours: Response) -> Iterator[Difference]:
    if native.error == ours.error or (native.error and NO_KERNEL.match(native.error[1])):
        return
    if ours.error is None:
        yield Difference("accepts", f"instead of {': '.join(native.error or ())[:200]}")
    elif native.error is None:
        yield Difference("raises", f"{': '.join(ours.error)[:300]}")
    else:
        yield Difference("error", f"{': '.join(ours.error)[:200]} instead of {': '.join(native.error)[:200]}")


def geometry(tensor: torch.Tensor) -> dict[str, Any]:
    """Return all of a tensor that is not its values."""
    told: dict[str, Any] = {"shape": tuple(tensor.shape), "dtype": tensor.dtype, "device": tensor.device.type}
    told |= {"layout": tensor.layout, "requires_grad": tensor.requires_grad}
    if tensor.layout is torch.strided and not tensor.is_nested:
        strides = zip(tensor.shape, tensor.stride(), strict=True)
        told["stride"] = tuple(stride if size > 1 and tensor.numel() else 0 for size, stride in strides)
        told |= {"offset": tensor.storage_offset() if tensor.numel() else 0}
        told |= {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
    return told


def _changed(native: dict[str, Any], ours: dict[str, Any]) -> str:
    names = [name for name in native if native[name] != ours.get(name)]
    return ", ".join(f"{name} {ours.get(name)} instead of {native[name]}" for name in names)


def _near(a: Any, b: Any) -> bool:
    """Return True for two numbers of one type that differ by a rounding in float32."""
    return type(a) is type(b) and isinstance(a, float | complex) and abs(a - b) <= 1e-5 + 1.3e-6 * abs(a)


def _leaf(kept: list[Response], wide: Callable[[], Response], part: str, index: int) -> Any:
    """Return one tensor of the answer in float64, None if there is none."""
    if not kept:
        kept.append(wide())
    found = getattr(kept[0], part)
    return found[index] if index < len(found) else None


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values as a dense tensor on the CPU without conjugate or negative bit."""
    dense = tensor.detach()
    if dense.is_nested:
        return torch.cat([on_host(t).flatten() for t in dense.unbind()])
    dense = dense if dense.layout is torch.strided else dense.to_dense()
    dense = dense.dequantize() if dense.is_quantized else dense
    if dense.is_meta or torch._is_zerotensor(dense):
        return torch.zeros(dense.shape, dtype=dense.dtype)
    return dense.resolve_conj().resolve_neg().cpu()


def _values(
    native: torch.Tensor,
    ours: torch.Tensor,
    tolerance: Tolerance,
    elementwise: bool,
    reference: Callable[[], Any],
) -> str:
    """Return how the values differ, empty if they agree or ours are as near the reference as the native ones."""
    a, b = on_host(native), on_host(ours)
    if a.shape != b.shape:
        return f"{tuple(b.shape)} elements instead of {tuple(a.shape)}"
    relative, absolute = tolerance
    if not (a.is_floating_point() or a.is_complex()):
        wrong = int((a != b).sum())
        return f"{wrong} of {a.numel()} differ" if wrong else ""
    dtype = torch.complex128 if a.is_complex() else torch.float64
    first, second = a.to(dtype), b.to(dtype)
    if _scaled(first, second, relative, absolute).le(1).all():
        return ""
    errors = _scaled(first, second, relative, absolute)
    worst = int(errors.flatten().argmax())
    count = int((errors > 1).sum())
    text = f"{count} of {a.numel()} differ, such as {b.flatten()[worst].item():.6g} "
    text += f"instead of {a.flatten()[worst].item():.6g}"
    known = reference()
    if not isinstance(known, torch.Tensor) or known.shape != native.shape:
        return text
    known = on_host(known).to(a.dtype).to(dtype)  # what is out of range is infinite for either
    if not elementwise:  # sums err by as much as their largest terms do
        finite = known.abs().where(known.isfinite(), torch.zeros_like(known.abs()))
        absolute += relative * float(finite.max())
    theirs, own = (_scaled(known, x, relative, absolute) for x in (first, second))
    bound = SLACK * theirs.where(theirs.isfinite(), torch.zeros_like(theirs)).max()
    allowed = torch.maximum(torch.full_like(own, max(1.0, float(bound))), theirs)
    return "" if own.le(allowed).all() else f"{text}; the reference is {known.flatten()[worst].item():.6g}"


def _scaled(expected: torch.Tensor, actual: torch.Tensor, relative: float, absolute: float) -> torch.Tensor:
    """Return each element's distance in units of its tolerance; infinite where only one is finite, 0 if they agree."""
    if expected.is_complex():
        parts = [torch.view_as_real(x.resolve_conj().resolve_neg()) for x in (expected, actual)]
        same = ((parts[0] == parts[1]) | (parts[0].isnan() & parts[1].isnan())).all(-1)
        finite = (parts[0].isfinite() & parts[1].isfinite()).all(-1)
        both_infinite = parts[0].isinf().any(-1) & parts[1].isinf().any(-1)
        undefined = (parts[0].isnan().any(-1) & parts[1].isnan().any(-1)) & ~both_infinite
        same = same | undefined
    else:
        same = (expected == actual) | (expected.isnan() & actual.isnan())
        finite = expected.isfinite() & actual.isfinite()
    zero = torch.zeros_like(expected)
    distance = (torch.where(finite, actual, zero) - torch.where(finite, expected, zero)).abs()
    scaled = distance / (absolute + relative * torch.where(finite, expected, zero).abs())
    scaled = torch.where(finite, scaled, torch.full_like(scaled, float("inf")))
    return torch.where(same, torch.zeros_like(scaled), scaled)


def tolerances(info: Any = None) -> Callable[[torch.dtype], Tolerance]:
    """Return PyTorch's default tolerance for each dtype, widened by the overrides of an OpInfo entry."""
    wider: dict[torch.dtype, Tolerance] = {}
    for decorated in getattr(info, "decorators", ()) or ():
        for each in getattr(decorated, "decorators", [decorated]):
            for dtype, bound in getattr(each, "d", {}).items():
                old = wider.get(dtype, (0.0, 0.0))
                rtol, atol = (bound.rtol, bound.atol) if hasattr(bound, "rtol") else (0.0, float(bound))
                wider[dtype] = max(old[0], rtol), max(old[1], atol)

    def tolerance(dtype: torch.dtype) -> Tolerance:
        known = dtype.is_floating_point or dtype.is_complex
        default = default_tolerances(dtype) if known and dtype.itemsize > 1 else (0.1, 0.1) if known else (0.0, 0.0)
        override = wider.get(dtype, (0.0, 0.0))
        return max(default[0], override[0]), max(default[1], override[1])

    return tolerance
