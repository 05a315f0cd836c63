"""Convert the checks of PyTorch's test_ops.py to calls whose native response is the standard.

An item is an entry in `op_db`, identified by its name and variant. Each check is a generator of probes. It runs while
the registration is suspended, so that PyTorch makes the samples and their copies.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from enable.conformance import samples as of
from enable.conformance.answers import SEED, Probe, Tolerance, tensors, tolerances
from enable.conformance.options import SuiteOptions

OUT_DTYPES = (torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64)
ALL_DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex128, torch.complex64, torch.complex32),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    torch.bool,
)


@cache
def entries() -> dict[str, Any]:
    """Return OpInfo's entries by name and variant."""
    from torch.testing._internal import common_methods_invocations as database

    # A drawing call is recognized by a change in the generator's state, so OpInfo must not reseed it; `answer` does.
    database.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    infos: list[Any] = database.op_db
    return {info.name + (f".{info.variant_test_name}" if info.variant_test_name else ""): info for info in infos}


def items(options: SuiteOptions) -> list[str]:
    """Return the names of all entries."""
    return list(entries())


def tolerance(item: str) -> Callable[[torch.dtype], Tolerance]:
    """Return an entry's tolerance per dtype."""
    return tolerances(entries()[item])


def probes(item: str, options: SuiteOptions, wide: bool, ours: bool) -> Iterator[Probe]:
    """Yield the calls of an entry's selected checks; `wide` converts samples to float64 or complex128."""
    info = entries()[item]
    undefined = "empty" in info.name or "resize" in info.name
    for check in options.checks or CHECKS:
        for dtype in (None,) if check in DTYPELESS else options.dtypes:
            if dtype is None or dtype in info.supported_dtypes(options.device):
                source = Source(info, options, dtype or torch.float32, check, undefined, wide)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    yield from CHECKS[check](source)


@dataclass(frozen=True)
class Source:
    """Samples of one entry in one dtype for one check, and the probes made from them."""

    info: Any
    options: SuiteOptions
    dtype: torch.dtype
    check: str
    undefined: bool
    wide: bool

    @property
    def elementwise(self) -> bool:
        """Return True for a unary or binary elementwise operator."""
        from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

        return isinstance(self.info, UnaryUfuncInfo | BinaryUfuncInfo)

    def samples(self, requires_grad: bool = False, function: Any = None) -> Iterator[tuple[str, Any]]:
        """Yield labelled samples, the same in every process; `function` is an OpInfo function that makes them."""
        torch.manual_seed(SEED)
        random.seed(SEED)
        np.random.seed(SEED)
        candidates = (function or self.info.sample_inputs_func)(
            self.info, self.options.device, self.dtype, requires_grad
        )
        try:
            selected = of.chosen(candidates, self.options.samples, _elements, self.options.elements)
        except Exception:  # noqa: BLE001 - OpInfo has no samples in this dtype on this device
            return
        name = str(self.dtype).removeprefix("torch.")
        for index, sample in enumerate(selected):
            yield f"{name} {index}", sample.transform(of.widened) if self.wide else sample

    def probe(self, label: str, sample: Any, function: Any = None, change: Any = of.copied, **options: Any) -> Probe:
        """Return the probe for one call on a copy of the sample; `change` converts each of its tensors."""
        copied_sample = sample.transform(lambda t: change(t) if of.plain(t) else of.copied(t))
        run = function or self.info.op

        def call() -> Any:
            return copied_sample.output_process_fn_grad(
                run(copied_sample.input, *copied_sample.args, **copied_sample.kwargs)
            )

        inputs = (copied_sample.input, copied_sample.args, copied_sample.kwargs)
        return Probe(self.check, label, call, inputs, self.undefined, elementwise=self.elementwise, **options)


def _elements(sample: Any) -> int:
    """Return the number of elements in a sample's tensors."""
    return of.elements_of((sample.input, sample.args, sample.kwargs))


def _forward(source: Source) -> Iterator[Probe]:
    """Yield plain calls."""
    for label, sample in source.samples():
        yield source.probe(label, sample)


def _reference(source: Source) -> Iterator[Probe]:
    """Yield calls with OpInfo's reference inputs."""
    function = source.info.reference_inputs_func
    for label, sample in source.samples(function=function) if function else ():
        yield source.probe(label, sample)


def _differentiates(source: Source) -> bool:
    """Return True if the operator has gradients in this dtype."""
    return bool(source.info.supports_autograd and (source.dtype.is_floating_point or source.dtype.is_complex))


def _gradients(source: Source, change: Any = of.copied, most: int | None = None) -> Iterator[Probe]:
    """Yield calls with a backward pass."""
    if not _differentiates(source):
        return
    for label, sample in list(source.samples(requires_grad=True))[:most]:
        yield _backward(source, f"{label} backward", sample, change)


def _backward(source: Source, label: str, sample: Any, change: Any) -> Probe:
    """Return a probe that computes the result and the gradients."""
    probe = source.probe(label, sample, change=change)
    leaves = [t for t in tensors(probe.inputs) if t.requires_grad]
    forward = probe.call

    def call() -> Any:
        result = forward()
        outputs = [t for t in tensors(result) if t.requires_grad]
        if not outputs or not leaves:
            return result
        return result, torch.autograd.grad(outputs, leaves, [_cotangent(t) for t in outputs], allow_unused=True)

    probe.call = call
    return probe


def _cotangent(tensor: torch.Tensor) -> torch.Tensor:
    """Return a varying gradient that is the same in every process; NumPy makes it, so no generator is involved."""
    numbers = torch.from_numpy(np.cos(np.arange(tensor.numel(), dtype=np.float64))).reshape(tensor.shape)
    gradient = numbers.to(tensor.dtype).to(tensor.device)
    return gradient if tensor.layout is torch.strided else gradient.to_sparse()


def _forward_ad(source: Source) -> Iterator[Probe]:
    """Yield calls with forward-mode differentiation."""
    from torch.autograd import forward_ad

    dual_of: Any = forward_ad.make_dual
    parts_of: Any = forward_ad.unpack_dual
    if not (source.info.supports_forward_ad and _differentiates(source)):
        return
    for label, sample in source.samples(requires_grad=True):
        sample_copy = sample.transform(of.copied)
        inputs_of_sample = tensors((sample_copy.input, sample_copy.args, sample_copy.kwargs))
        tangents = {id(t): of.copied(t.detach()) for t in inputs_of_sample if t.requires_grad}

        def call(sample_copy: Any = sample_copy, tangents: dict[int, torch.Tensor] = tangents) -> Any:
            def dual(t: Any) -> Any:
                return dual_of(t.detach(), tangents[id(t)]) if id(t) in tangents else t

            with forward_ad.dual_level():
                args, kwargs = (
                    tree_map(dual, (sample_copy.input, *sample_copy.args)),
                    tree_map(dual, sample_copy.kwargs),
                )
                result = source.info.op(*args, **kwargs)
                return [tuple(parts_of(t)) for t in tensors(sample_copy.output_process_fn_grad(result))]

        inputs = (sample_copy.input, sample_copy.args, sample_copy.kwargs)
        yield Probe(source.check, label, call, inputs, source.undefined, elementwise=source.elementwise)


def _noncontiguous(source: Source) -> Iterator[Probe]:
    """Yield calls with strided, transposed and offset inputs."""
    for label, sample in source.samples():
        for name, change in (("strided", of.with_stride), ("transposed", of.transposed), ("offset", of.with_offset)):
            yield source.probe(f"{label} {name}", sample, change=change)
    yield from _gradients(source, change=of.with_stride, most=2)


def _bits(source: Source) -> Iterator[Probe]:
    """Yield calls with the negative and conjugate bits set."""
    inexact = source.dtype.is_floating_point or source.dtype.is_complex
    kinds = [("neg", of.with_neg)] if inexact else []
    kinds += [("conj", of.with_conj), ("conj and neg", of.with_both)] if source.dtype.is_complex else []
    for label, sample in source.samples():
        for name, change in kinds:
            yield source.probe(f"{label} {name}", sample, change=change)
            if source.info.inplace_variant is not None:
                yield source.probe(f"{label} {name} in place", sample, source.info.inplace_variant, change)
    for _name, change in kinds[-2:-1] or kinds:
        yield from _gradients(source, change=change, most=1)


def _variants(source: Source) -> Iterator[Probe]:
    """Yield calls by method, in-place and operator variants and by aliases."""
    kinds = ("method_variant", "inplace_variant", "operator_variant", "inplace_operator_variant")
    functions = {kind: getattr(source.info, kind) for kind in kinds}
    for alias in source.info.aliases:
        functions |= {f"{alias.name} {k}": getattr(alias, k) for k in ("op", "method_variant", "inplace_variant")}
    for label, sample in source.samples():
        for name, function in functions.items():
            if function is not None:
                yield source.probe(f"{label} {name}", sample, function)
    if source.info.inplace_variant is not None and _differentiates(source):
        for label, sample in source.samples(requires_grad=True):
            yield source.probe(f"{label} in place on a leaf", sample, source.info.inplace_variant)


def _out(source: Source) -> Iterator[Probe]:
    """Yield calls with various `out` tensors."""
    if not source.info.supports_out:
        return
    for label, sample in source.samples():
        try:
            expected = source.probe(label, sample).call()
        except Exception:  # noqa: BLE001 - the check `forward` compares exceptions
            continue
        if not all(map(of.plain, [expected] if isinstance(expected, torch.Tensor) else expected)):
            continue
        for name, change in _destinations(source, expected):
            out = tree_map(lambda t, change=change: change(torch.full_like(t.detach(), 1)), expected)
            probe = source.probe(f"{label} out={name}", sample, partial(_into, source.info.op, out), warned=True)
            probe.inputs = (probe.inputs, out)
            yield probe


def _into(function: Any, out: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the function with `out`."""
    return function(*args, **kwargs, out=tuple(out) if isinstance(out, tuple | list) else out)


def _destinations(source: Source, expected: Any) -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor]]]:
    """Yield ways to change a suitable `out` tensor, by name."""
    first = tensors(expected)[0] if tensors(expected) else torch.empty(0)
    yield "right", of.copied
    yield from (("strided", of.with_stride), ("transposed", of.transposed), ("offset", of.with_offset))
    yield "empty", lambda t: t.new_empty(0)
    yield "larger", lambda t: t.new_ones((*t.shape[:-1], t.shape[-1] + 1) if t.dim() else (2,))
    for dtype in OUT_DTYPES:
        if dtype != first.dtype or source.wide:
            yield str(dtype).removeprefix("torch."), partial(of.as_dtype, dtype=dtype)
    yield from (("conj", of.with_conj), ("neg", of.with_neg))
    yield "of another device", lambda t: t.to("cpu" if source.options.device != "cpu" else "meta")
    if first.is_floating_point() or first.is_complex():
        yield "that requires a gradient", lambda t: t.requires_grad_() if t.is_floating_point() or t.is_complex() else t


def _dtypes(source: Source) -> Iterator[Probe]:
    """Yield calls in all dtypes, including unsupported ones."""
    for dtype in ALL_DTYPES:
        dtype_source = Source(source.info, source.options, dtype, source.check, source.undefined, source.wide)
        for label, sample in list(dtype_source.samples())[:1]:
            yield dtype_source.probe(label, sample)
        yield from _gradients(dtype_source, most=1)


def _errors(source: Source) -> Iterator[Probe]:
    """Yield calls with OpInfo's error inputs."""
    function = source.info.error_inputs_func
    try:
        errors = list(function(source.info, source.options.device)) if function else []
    except Exception:  # noqa: BLE001 - these inputs cannot be made on this device
        return
    for index, error in enumerate(errors):
        yield source.probe(f"error input {index}", error.sample_input, warned=False)


CHECKS: dict[str, Callable[[Source], Iterator[Probe]]] = {
    "forward": _forward,
    "reference": _reference,
    "gradients": _gradients,
    "forward_ad": _forward_ad,
    "noncontiguous": _noncontiguous,
    "bits": _bits,
    "variants": _variants,
    "out": _out,
    "dtypes": _dtypes,
    "errors": _errors,
}
DTYPELESS = {"dtypes", "errors"}
