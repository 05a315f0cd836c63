"""Compare values with the reference elementwise: find the wrong elements, and compute the allowed errors."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from traces.subgraphs import is_subgraph
from traces.values import Packed
from verify.cases.case import Expected
from verify.cases.elements import SMALLEST_NORMAL
from verify.cases.packed import contents
from verify.comparison.factors import aligned, off, reflected, repivoted
from verify.comparison.open_writes import one_of_those_written
from verify.comparison.ties import in_order, names_another, open_ties, unordered
from verify.comparison.tolerance import (
    ATENS,
    BETWEEN,
    LEANING,
    LEANS,
    MOST_AS_ATENS,
    MOST_NUDGED,
    NUDGES,
    SINGLE_ROUNDINGS,
    STEP_ROUNDINGS,
    SUM_ROUNDINGS,
    tolerance,
    unit,
    unit_of,
)
from verify.operators import (
    conditioned,
    converts,
    copies,
    depends_on_steps,
    factors,
    goes_on_with_results,
    group,
    judged_as,
    multiplies,
    signs_zeros,
)


def differences(
    overload: str, expected: Expected, answer: Packed, index: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return an answer's tensor, its reference, and a mask for wrong elements; factors are replaced by products.

    ATen's own answer is always right. If it is far from the reference, values near it are right as well. For
    example, float32 and float64 may fall on different sides of a cell border at which a gradient jumps.
    """
    got, want, wrong = _differences(overload, expected, answer, index)
    if expected.flushes and wrong.any() and got.dtype in (torch.float32, torch.bfloat16):
        # a result, or a number on the way to it, may have been flushed
        wrong &= ~((want != 0) & ((got.to(torch.float64) - want).abs() < SMALLEST_NORMAL))
    if wrong.any():
        written_elements = one_of_those_written(expected, index, contents(answer, index))
        if written_elements is not None:
            wrong &= ~_as_parts(written_elements, wrong)
    if wrong.any() and (refactored := repivoted(overload, expected, answer, index)) is not None:
        wrong &= ~_as_parts(refactored, wrong)
    if (reflections := reflected(overload, expected, answer, index)) is not None:
        dependent, right = (_as_parts(mask, wrong) for mask in reflections)
        wrong = torch.where(dependent, ~right, wrong)
    return got, want, wrong


def _as_parts(mask: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    """Return a mask for elements as one that fits `parts`, which may have a real and an imaginary part for each."""
    return mask.unsqueeze(-1) if parts.dim() > mask.dim() else mask


def _differences(
    overload: str, expected: Expected, answer: Packed, index: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    products = off(overload, expected, answer, index)
    if products is not None:
        return products
    packed = (expected.native, expected.values, answer)
    native, reference, got = (real(aligned(overload, expected, p, index)) for p in packed)
    if native.is_floating_point() and native.dtype.itemsize == 1:
        # represents every 8-bit float exactly; few operators support these dtypes
        native, got = native.float(), got.float()
    overload = judged_as(overload, expected.before.tree)
    chosen = None
    if unordered(overload, expected):
        if open_ties(overload, expected, index):
            chosen = real(contents(answer, index - 1))
        elif index == len(expected.before.tensors):
            native, reference, got = (in_order(expected, t) for t in (native, reference, got))
    exact = group(overload) == "exact" or not native.is_floating_point()
    want = native if exact else reference
    if copies(overload) and _keeps_its_dtype(expected, native.dtype):
        wrong = _not_copied(expected, native, got)
        if _is_complex(expected, index) and any(ref.neg for ref in expected.before.tensors):
            # ATen's vector and scalar code give a zero part different signs
            wrong &= ~((got == 0) & (native == 0))
        return got, want, wrong
    wrong = (got != native) & ~(got.isnan() & native.isnan())
    if wrong.any() and open_ties(overload, expected, index):
        wrong &= names_another(expected, native, got, chosen)
    if not exact:
        sizes = None if expected.sizes is None else real(contents(expected.sizes, index)).to(torch.float64)
        base = _moduli(want) if _is_complex(expected, index) else want
        wrong &= _outside(overload, native.dtype, got, want, base, sizes)
        if wrong.any() and _is_complex(expected, index):
            # the sign of an infinity beside NaN is not specified (C99, annex G.6)
            wrong &= ~(want.isinf() & got.isinf() & want.flip(-1).isnan() & got.flip(-1).isnan())
            if factors(overload):  # nor are the parts after a division by a zero pivot
                wrong &= want.isfinite().all(-1, keepdim=True) | got.isfinite().all(-1, keepdim=True)
        if wrong.any() and native.dtype is torch.float32:
            # elements for which ATen itself is far from the reference
            atens_wrong = _outside(overload, native.dtype, native, want, base, sizes)
            wrong &= ~atens_wrong | _outside(overload, native.dtype, got, native, native, sizes)
        if wrong.any() and conditioned(overload):
            wrong &= ~((got.to(torch.float64) - want).abs() <= _unsure(overload, expected, index))
        if wrong.any() and is_subgraph(overload):
            wrong &= ~((got.to(torch.float64) - want).abs() <= _between(overload, expected, native, want))
        if wrong.any() and group(overload) == "pointwise":
            wrong &= ~((got.to(torch.float64) - want).abs() <= _excused(overload, expected, index))
        if group(overload) == "pointwise" and not wrong.any() and _leans(got, want) and not _leans(native, want):
            wrong = got != want
    if wrong.any() and not native.is_floating_point() and converts(overload):
        wrong &= ~_unrepresentable(expected, native)
    # the sign of a complex zero is not specified
    signed = native.is_floating_point() and not _is_complex(expected, index)
    if signed and signs_zeros(overload) and _of_floats(expected):
        wrong |= (got == 0) & _one_signed_zero(native, reference) & (got.signbit() != native.signbit())
    return got, want, wrong


def _not_copied(expected: Expected, native: torch.Tensor, got: torch.Tensor) -> torch.Tensor:
    """Return a mask for elements whose bits are not ATen's.

    Some ATen copies convert to float32 and change NaN. Where its NaN is in no argument, any argument's NaN is right.
    """
    wrong = _bits(got) != _bits(native)
    if bool((wrong & native.isnan()).any()):
        values = (real(contents(expected.before, i)) for i in range(len(expected.before.tensors)))
        sources = torch.cat([_bits(t[t.isnan()]) for t in values if t.dtype is native.dtype])
        wrong &= ~(native.isnan() & ~torch.isin(_bits(native), sources) & torch.isin(_bits(got), sources))
    return wrong


def _unrepresentable(expected: Expected, native: torch.Tensor) -> torch.Tensor:
    """Return a mask for integers converted from a floating number that they cannot represent.

    C++ leaves the result undefined (conv.fpint), and devices differ.
    """
    beyond = torch.zeros(native.shape, dtype=torch.bool)
    for i, ref in enumerate(expected.before.tensors):
        dtype = getattr(torch, ref.dtype)
        if dtype.is_floating_point and ref.shape == tuple(native.shape) and native.dtype is not torch.bool:
            info, source = torch.iinfo(native.dtype), contents(expected.before, i).to(torch.float64).trunc()
            beyond |= ~((source >= info.min) & (source < float(info.max + 1)))
    return beyond


def _one_signed_zero(native: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Return a mask for elements that are zeros with the same sign in both; otherwise either sign is right.

    For gelu(-0.0), ATen's float64 returns -0.0. Its float32 returns +0.0 on processors without vectors beyond
    AVX2. The sign depends on how the steps were contracted.
    """
    return (native == 0) & (reference == 0) & (native.signbit() == reference.signbit())


def _is_complex(expected: Expected, index: int) -> bool:
    return bool(getattr(torch, expected.native.tensors[index].dtype).is_complex)


def _moduli(parts: torch.Tensor) -> torch.Tensor:
    """Return the modulus of each complex number [..., 2], expanded to both its parts.

    Complex arithmetic is accurate relative to the modulus, because a part may be a difference of products that
    cancel (Higham 2002, lemma 3.5).
    """
    parts = parts.to(torch.float64)
    return torch.hypot(*parts.unbind(-1)).unsqueeze(-1).expand(parts.shape)


def _of_floats(expected: Expected) -> bool:
    """Return True if an argument is a floating tensor; integers have only one zero."""
    return any(getattr(torch, ref.dtype).is_floating_point for ref in expected.before.tensors)


def _keeps_its_dtype(expected: Expected, dtype: torch.dtype) -> bool:
    """Return True if all floating arguments have the result's dtype, so that nothing is converted."""
    floats = {ref.dtype for ref in expected.before.tensors if getattr(torch, ref.dtype).is_floating_point}
    return floats <= {str(dtype).removeprefix("torch.")}


def _bits(t: torch.Tensor) -> torch.Tensor:
    """Return each element's bits as an integer."""
    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return t.contiguous().view(integers[t.dtype.itemsize])


def _leans(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Return True if half-precision results err towards 0 or away from 0 by a large part of an ulp on average."""
    if got.dtype not in (torch.float16, torch.bfloat16):
        return False
    info, exact = torch.finfo(got.dtype), want.to(torch.float64)
    inexact = exact.isfinite() & got.isfinite() & (exact.abs() >= info.tiny) & (got.to(torch.float64) != exact)
    if int(inexact.sum()) < LEANS:
        return False
    exact = exact[inexact]
    ulp = torch.exp2(exact.abs().log2().floor()) * info.eps
    return bool(((got[inexact].to(torch.float64) - exact) * exact.sign() / ulp).mean().abs() > LEANING)


def _excused(overload: str, expected: Expected, index: int) -> torch.Tensor:
    """Return the error that each element of a pointwise result may have in addition to its own roundings.

    The first part is the error of ATen's own float32, relative to the result. The second part is the change
    caused by rounding an argument; it applies if terms may cancel, or if the table says so for the operator.
    """
    exact, native = (real(contents(p, index)) for p in (expected.values, expected.native))
    exact = exact.to(torch.float64)
    allowed = torch.zeros_like(exact)
    if native.dtype is torch.float32:
        error = (native.to(torch.float64) - exact).abs().nan_to_num(0.0, posinf=0.0)
        normal = exact.isfinite() & (exact.abs() >= torch.finfo(torch.float32).tiny)
        worst = float((error / exact.abs())[normal].max()) if bool(normal.any()) else 0.0
        allowed += ATENS * torch.maximum(error, min(worst, MOST_NUDGED / ATENS) * exact.abs().nan_to_num(0.0, 0.0, 0.0))
    if depends_on_steps(overload, len(expected.moved)):
        steps = NUDGES + (unit_of(native.dtype) / unit(native.dtype) if goes_on_with_results(overload) else 0)
        for packed in expected.moved:
            moved = real(contents(packed, index)).to(torch.float64)
            if moved.shape == exact.shape:
                allowed += steps * (moved - exact).abs().nan_to_num(0.0, posinf=0.0)
    return allowed + STEP_ROUNDINGS * unit(native.dtype) * _terms(overload, expected, exact)


def _terms(overload: str, expected: Expected, exact: torch.Tensor) -> torch.Tensor:
    """Return a lower bound for the size of terms that may cancel in a pointwise result without tensor arguments.

    arange is start + i * step, so the size of i * step is bounded by the result and `start`.
    """
    start = expected.before.tree.get("start")
    if not overload.startswith("aten::arange") or start is None:
        return torch.zeros_like(exact)
    size = abs(float.fromhex(start["float"]) if isinstance(start, dict) else float(start))
    return (exact.abs() + size).nan_to_num(0.0)


def is_wrong(overload: str, expected: Expected, answer: Packed, index: int) -> bool:
    return bool(differences(overload, expected, answer, index)[2].any())


def _unsure(overload: str, expected: Expected, index: int) -> float:
    """Return the error that an element may have because the case is ill-conditioned.

    The limit is the change caused by nudged arguments, or ATENS times the error of ATen's own float32, because a
    sum of a thousand similar terms errs to one side. If both are large compared with the result, for example when
    terms cancel down to their roundings, the limit is ATen's own error.
    """
    exact, native = (real(aligned(overload, expected, p, index)) for p in (expected.values, expected.native))
    exact, most = exact.to(torch.float64), MOST_NUDGED * largest(exact)
    # each of the steps of an elimination adds roundings, whose sum grows like the root of their number
    nudges = NUDGES * max(expected.before.tensors[0].shape[-1:], default=1) ** 0.5 if factors(overload) else NUDGES
    atens = largest(native.to(torch.float64) - exact) if native.dtype is torch.float32 else 0.0
    nudged = [real(aligned(overload, expected, packed, index)).to(torch.float64) for packed in expected.nudged]
    moved = max((largest(other - exact) for other in nudged if other.shape == exact.shape), default=0.0)
    as_atens = min(atens, nudges * moved, MOST_AS_ATENS * largest(exact))
    # everything cancels, as in gradients of a softmax over one element, so no relative limit applies
    if not bool(exact.any()):
        return max(nudges * moved, as_atens)
    return max(moved, as_atens, min(max(nudges * moved, ATENS * atens), most))


def _between(overload: str, expected: Expected, native: torch.Tensor, want: torch.Tensor) -> float:
    """Return the error of a subgraph's result that rounding between its steps may cause.

    ATen rounds intermediate results, the reference does not, and a kernel may or may not. In float32 or more,
    `_unsure` covers this.
    """
    half = {"bfloat16", "float16"}
    if not half & {*(ref.dtype for ref in expected.before.tensors), *(ref.dtype for ref in expected.native.tensors)}:
        return 0.0
    error = largest(native.to(torch.float64) - want.to(torch.float64))
    return min(BETWEEN * error, MOST_NUDGED * largest(want.to(torch.float64)))


def largest(error: torch.Tensor) -> float:
    return float(error.abs().nan_to_num(0.0, posinf=0.0).max()) if error.numel() else 0.0


def real(t: torch.Tensor) -> torch.Tensor:
    """Return a complex tensor as pairs of reals, [..., 2]; return any other tensor unchanged."""
    return torch.view_as_real(t) if t.is_complex() else t


def _outside(
    overload: str,
    dtype: torch.dtype,
    got: torch.Tensor,
    expected: torch.Tensor,
    base: torch.Tensor,
    sizes: torch.Tensor | None,
) -> torch.Tensor:
    """Return True for elements outside the tolerance, and for NaN or infinities that differ from the expected value.

    Args:
        overload: Overload name.
        dtype: The case's result dtype.
        got: Answer.
        expected: Reference.
        base: Values to which each element's error is relative.
        sizes: Sums over absolute terms, or None.
    """
    limits = tolerance(overload, dtype)
    want = expected.to(torch.float64)
    have = got.to(torch.float64)
    finite = want.isfinite() & have.isfinite()
    # float64 may stay finite although the case's own dtype overflows.
    overflow = have.isinf() & (want.abs() > torch.finfo(dtype).max) & (have.sign() == want.sign())
    magnitude = want[want.isfinite()].abs().max() if want.isfinite().any() else torch.zeros((), dtype=torch.float64)
    if sizes is not None and not bool(want.isfinite().all()):
        magnitude = magnitude.clamp_min(largest(sizes))  # the few finite results may all be small
    info = torch.finfo(dtype)
    half = info.smallest_normal * info.eps / 2  # spacing between denormal numbers
    allowed = limits.scale * magnitude + limits.rtol * base.to(torch.float64).abs() + half
    if multiplies(overload) and dtype is not torch.float64:
        allowed = allowed + torch.finfo(torch.float32).smallest_normal
    if sizes is not None:
        allowed = allowed + SUM_ROUNDINGS * unit(dtype) * sizes.abs().nan_to_num(0.0, posinf=0.0)
    close = finite & ((have - want).abs() <= allowed)
    return ~(close | (have == want) | (have.isnan() & want.isnan()) | overflow)


def is_single(overload: str, expected: Expected, got: Packed, indices: Iterable[int]) -> bool:
    """Return True if all wrong elements are float64 results that are right to the precision of float32."""
    for i in indices:
        have, want, wrong = differences(overload, expected, got, i)
        if not wrong.any():
            continue
        if want.dtype is not torch.float64 or contents(expected.native, i).dtype is not torch.float64:
            return False
        if not bool(((have - want).abs() <= SINGLE_ROUNDINGS * 2.0**-24 * largest(want))[wrong].all()):
            return False
    return True
