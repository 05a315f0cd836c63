"""Record the response to a call, and compare two responses to the same call.

A `Probe` is one call with its own inputs. It is made twice: PyTorch answers the first one natively, and the
registration answers the second. `differences` compares the two responses. No property of an operator is asserted by
itself: the native response is the specification, including exceptions.
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
SLACK = 4.0  # a kernel's error may be this many times the native error; both against float64
WIDE = {torch.float16, torch.bfloat16, torch.float32, torch.complex32, torch.complex64}
BROKEN = re.compile(
    r"illegal memory access|device-side assert|unspecified launch failure|misaligned address|an illegal"
)
# PyTorch has no kernel on the device, so there is no behavior to preserve
NO_KERNEL = re.compile("Could not run 'aten::")
RESIZED = re.compile("resized|number of elements in the out tensor")
_NUMBERS = re.compile(r"0x[0-9a-f]+")

Tolerance = tuple[float, float]  # relative, absolute


class DeviceLost(Exception):
    """Raised if the GPU context is broken, so that no later call in this process can be trusted."""


@dataclass
class Probe:
    """One call of a check.

    Attributes:
        check: Name of the check.
        label: Identifies the call within the check.
        call: Makes the call.
        inputs: Tensors that the call may write or alias.
        undefined: True if the result's values are undefined.
        warned: True if a warning about resizing `out` is part of the response.
        elementwise: True if each result element depends on one element per input. Its accuracy is then relative to
            its own size, not to the largest element's.
        like: Label of a probe that makes the same call.
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
    """The response to a call.

    Attributes:
        result: Leaves of the result.
        structure: The result's tree structure as text.
        inputs: Input tensors after the call.
        aliases: (result, input, same object) for each result that shares storage with an input.
        error: Type and message of the exception, or None.
        drew: True if the call drew random numbers.
        resized: True if the call warned about resizing `out`.
    """

    result: list[Any] = field(default_factory=list)
    structure: str = ""
    inputs: list[torch.Tensor] = field(default_factory=list)
    aliases: frozenset[tuple[int, int, bool]] = frozenset()
    error: tuple[str, str] | None = None
    drew: bool = False
    resized: bool = False


class Difference(NamedTuple):
    """A difference between two responses.

    `kind` is one of raises, accepts, error, structure, geometry, values, alias and warning.
    """

    kind: str
    detail: str


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return all tensors in a tree, in order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def answer(probe: Probe, device: str, native: bool = True) -> Response:
    """Make the call with the generators in a fixed state and return the response.

    If `native` is set, note if the call draws random numbers; the check itself calls operators.

    Raises:
        DeviceLost: The call broke the GPU context.
    """
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
        except Exception as error:  # noqa: BLE001 - every exception is a response
            message = _NUMBERS.sub("0x", str(error)).strip()
            if BROKEN.search(message):
                raise DeviceLost(f"{type(error).__name__}: {message[:300]}") from error
            return Response(inputs=inputs, error=(type(error).__name__, message))
    leaves, spec = tree_flatten(result)
    pairs = [(t, i) for i, t in enumerate(leaves) if isinstance(t, torch.Tensor)]
    aliases = {
        (i, j, t is inputs[j]) for t, i in pairs for j, s in enumerate(storages) if s is not None and _storage(t) == s
    }
    drew = before is not None and not torch.equal(before, _generator(device))
    resized = probe.warned and any(RESIZED.search(str(w.message)) for w in caught)
    return Response(leaves, str(spec), inputs, frozenset(aliases), None, drew, resized)


def _generator(device: str) -> Any:
    """Return the states of the CPU's and the device's default generators."""
    states = [torch.get_rng_state(), *([torch.cuda.get_rng_state()] if device == "cuda" else [])]
    return torch.cat(states)


def _storage(tensor: torch.Tensor) -> int | None:
    """Return the identity of a strided tensor's storage, or None."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else None


def differences(
    probe: Probe,
    native: Response,
    ours: Response,
    tolerance: Callable[[torch.dtype], Tolerance],
    wide: Callable[[], Response],
) -> Iterator[Difference]:
    """Yield the differences between two responses.

    Args:
        probe: The call.
        native: PyTorch's response.
        ours: The registration's response.
        tolerance: Returns the tolerance for a dtype.
        wide: Returns PyTorch's native response in float64; called only if values differ.
    """
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
    input_dtypes = narrowest(native.inputs)
    reference: list[Response] = []
    for part in ("result", "inputs"):
        for i, (a, b) in enumerate(zip(getattr(native, part), getattr(ours, part), strict=True)):
            label = f"{part} {i}"
            if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
                is_equal = type(a) is type(b) and (a is b or a == b or a != a or probe.undefined or native.drew)
                if not is_equal and not _near(a, b):
                    yield Difference("values", f"{label}: {b!r:.60} instead of {a!r:.60}")
                continue
            if geometry(a) != geometry(b):
                yield Difference("geometry", f"{label}: {_changed(geometry(a), geometry(b))}")
            elif not probe.undefined and not native.drew:
                bounds = [tolerance(dtype) for dtype in (a.dtype, *input_dtypes)]
                bound = max(r for r, _ in bounds), max(t for _, t in bounds)
                detail = _values(a, b, bound, probe.elementwise, partial(_leaf, reference, wide, part, i))
                if detail:
                    yield Difference("values", f"{label}: {detail}")


def narrowest(inputs: list[torch.Tensor]) -> list[torch.dtype]:
    """Return the inputs' floating dtypes that limit the accuracy: a wider result is no more accurate.

    Integers count as the default dtype.
    """
    integers = [torch.get_default_dtype() for t in inputs if not (t.is_floating_point() or t.is_complex())]
    return list({t.dtype for t in inputs if t.dtype in WIDE} | {*integers})


def _error_difference(native: Response, ours: Response) -> Iterator[Difference]:
    """Yield the difference between exceptions. A missing native kernel allows any response."""
    if native.error == ours.error or (native.error and NO_KERNEL.match(native.error[1])):
        return
    if ours.error is None:
        yield Difference("accepts", f"instead of {': '.join(native.error or ())[:200]}")
    elif native.error is None:
        yield Difference("raises", f"{': '.join(ours.error)[:300]}")
    else:
        yield Difference("error", f"{': '.join(ours.error)[:200]} instead of {': '.join(native.error)[:200]}")


def geometry(tensor: torch.Tensor) -> dict[str, Any]:
    """Return all properties of a tensor except its values."""
    properties: dict[str, Any] = {"shape": tuple(tensor.shape), "dtype": tensor.dtype, "device": tensor.device.type}
    properties |= {"layout": tensor.layout, "requires_grad": tensor.requires_grad}
    if tensor.layout is torch.strided and not tensor.is_nested:
        strides = zip(tensor.shape, tensor.stride(), strict=True)
        properties["stride"] = tuple(stride if size > 1 and tensor.numel() else 0 for size, stride in strides)
        properties |= {"offset": tensor.storage_offset() if tensor.numel() else 0}
        properties |= {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
    return properties


def _changed(native: dict[str, Any], ours: dict[str, Any]) -> str:
    """Return the differing properties as text."""
    names = [name for name in native if native[name] != ours.get(name)]
    return ", ".join(f"{name} {ours.get(name)} instead of {native[name]}" for name in names)


def _near(a: Any, b: Any) -> bool:
    """Return True if two numbers have the same type and differ by at most a float32 rounding."""
    return type(a) is type(b) and isinstance(a, float | complex) and abs(a - b) <= 1e-5 + 1.3e-6 * abs(a)


def _leaf(kept: list[Response], wide: Callable[[], Response], part: str, index: int) -> Any:
    """Return one tensor from the float64 response, or None if it has none."""
    if not kept:
        kept.append(wide())
    leaves = getattr(kept[0], part)
    return leaves[index] if index < len(leaves) else None


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values as a dense CPU tensor without conjugate and negative bits."""
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
    """Describe how the values differ; empty if they agree or ours are about as close to the reference as the native."""
    a, b = on_host(native), on_host(ours)
    if a.shape != b.shape:
        return f"{tuple(b.shape)} elements instead of {tuple(a.shape)}"
    relative, absolute = tolerance
    if not (a.is_floating_point() or a.is_complex()):
        differing = int((a != b).sum())
        return f"{differing} of {a.numel()} differ" if differing else ""
    dtype = torch.complex128 if a.is_complex() else torch.float64
    first, second = a.to(dtype), b.to(dtype)
    if _scaled(first, second, relative, absolute).le(1).all():
        return ""
    errors = _scaled(first, second, relative, absolute)
    worst = int(errors.flatten().argmax())
    count = int((errors > 1).sum())
    text = f"{count} of {a.numel()} differ, such as {b.flatten()[worst].item():.6g} "
    text += f"instead of {a.flatten()[worst].item():.6g}"
    exact = reference()
    if not isinstance(exact, torch.Tensor) or exact.shape != native.shape:
        return text
    # values beyond the dtype's range become infinite, as in both responses
    exact = on_host(exact).to(a.dtype).to(dtype)
    if not elementwise:  # a sum's error is relative to its largest terms
        finite = exact.abs().where(exact.isfinite(), torch.zeros_like(exact.abs()))
        absolute += relative * float(finite.max())
    native_errors, our_errors = (_scaled(exact, x, relative, absolute) for x in (first, second))
    bound = SLACK * native_errors.where(native_errors.isfinite(), torch.zeros_like(native_errors)).max()
    allowed = torch.maximum(torch.full_like(our_errors, max(1.0, float(bound))), native_errors)
    return "" if our_errors.le(allowed).all() else f"{text}; the reference is {exact.flatten()[worst].item():.6g}"


def _scaled(expected: torch.Tensor, actual: torch.Tensor, relative: float, absolute: float) -> torch.Tensor:
    """Return each element's distance divided by its tolerance.

    The distance is 0 if the elements agree and infinite if exactly one is finite.
    """
    if expected.is_complex():
        parts = [torch.view_as_real(x.resolve_conj().resolve_neg()) for x in (expected, actual)]
        is_equal = ((parts[0] == parts[1]) | (parts[0].isnan() & parts[1].isnan())).all(-1)
        finite = (parts[0].isfinite() & parts[1].isfinite()).all(-1)
        both_infinite = parts[0].isinf().any(-1) & parts[1].isinf().any(-1)
        undefined = (parts[0].isnan().any(-1) & parts[1].isnan().any(-1)) & ~both_infinite
        is_equal = is_equal | undefined
    else:
        is_equal = (expected == actual) | (expected.isnan() & actual.isnan())
        finite = expected.isfinite() & actual.isfinite()
    zero = torch.zeros_like(expected)
    distance = (torch.where(finite, actual, zero) - torch.where(finite, expected, zero)).abs()
    scaled = distance / (absolute + relative * torch.where(finite, expected, zero).abs())
    scaled = torch.where(finite, scaled, torch.full_like(scaled, float("inf")))
    return torch.where(is_equal, torch.zeros_like(scaled), scaled)


def tolerances(info: Any = None) -> Callable[[torch.dtype], Tolerance]:
    """Return PyTorch's default tolerance per dtype, widened by the overrides of an OpInfo entry."""
    wider: dict[torch.dtype, Tolerance] = {}
    for decorated in getattr(info, "decorators", ()) or ():
        for decorator in getattr(decorated, "decorators", [decorated]):
            for dtype, bound in getattr(decorator, "d", {}).items():
                old = wider.get(dtype, (0.0, 0.0))
                rtol, atol = (bound.rtol, bound.atol) if hasattr(bound, "rtol") else (0.0, float(bound))
                wider[dtype] = max(old[0], rtol), max(old[1], atol)

    def tolerance(dtype: torch.dtype) -> Tolerance:
        known = dtype.is_floating_point or dtype.is_complex
        default = default_tolerances(dtype) if known and dtype.itemsize > 1 else (0.1, 0.1) if known else (0.0, 0.0)
        override = wider.get(dtype, (0.0, 0.0))
        return max(default[0], override[0]), max(default[1], override[1])

    return tolerance
