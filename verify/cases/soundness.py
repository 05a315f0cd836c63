"""Detection of invalid calls that ATen answers anyway.

In such a call ATen reads unrelated memory, or returns a result that other implementations do not. A subgraph is
sound if each of its steps is. Used by verify/cases/trial.py.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import torch

from traces.facts import tagged
from traces.overloads import base_name, resolve
from traces.subgraphs import subgraph_of
from verify.cases.arguments import Arguments, tensors
from verify.cases.preconditions import broken
from verify.operators import elementwise, group

# Exceptions that ATen raises for invalid calls.
ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
_CONVOLUTIONS = tagged("convolutions")
_EPS = 1e-5  # epsilon of a forward call, which the backward call does not receive
# Arguments that hold the input sizes for a forward call, passed to its backward call.
_SIZES = ("input_sizes", "input_size", "self_sizes")
_WITH_INDICES = 2  # results of a forward call that returns indices: the largest elements, and their positions
_FLASH = tagged("flash_attention")
_MAX_DEGREE = 1 << 10
_ELIMINATED = tagged("eliminated")
# Arguments of a batch norm with one value for each channel.
_BY_CHANNEL = ("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd", "save_var")
# Factors in a product that is added.
_FACTORS = {
    **dict.fromkeys(("addmm", "_addmm_activation"), ("mat1", "mat2")),
    **dict.fromkeys(("addbmm", "baddbmm"), ("batch1", "batch2")),
    "addmv": ("mat", "vec"),
}
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class _NotSound(Exception):
    """A step in a subgraph is not sound."""


def is_sound(overload: str, arguments: Arguments) -> bool:
    """Return True if the arguments fit together in every respect that ATen does not check itself.

    The arguments may be overwritten.
    """
    subgraph = subgraph_of(overload)
    if subgraph is None:
        return not any(fault(overload, arguments) for fault in _FAULTS)

    def check(step: str, step_arguments: Arguments) -> None:
        if not is_sound(step, step_arguments) or broken(step, step_arguments) is not None:
            raise _NotSound

    try:
        subgraph.run(*arguments.values(), before=check)
    except (_NotSound, *ERRORS):
        return False
    return True


def _follows_nothing(overload: str, arguments: Arguments) -> bool:
    """Return True if no forward call can precede this backward call, as far as the arguments show it.

    The forward operator has to answer, and the gradient needs the result's shape, unless both operators are
    pointwise and may broadcast. Indices that the backward call takes are the forward call's second result.
    """
    gradient = next((v for name, v in arguments.items() if name.startswith("grad")), None)
    result = next((arguments[name] for name in ("output", "result") if name in arguments), None)
    shapes = {tuple(t.shape) for t in (gradient, result) if isinstance(t, torch.Tensor)}
    if "_backward" in overload and not elementwise(overload) and len(shapes) > 1:
        return True
    op = getattr(torch.ops.aten, base_name(resolve(overload)).removesuffix("_backward"), None)
    if not overload.endswith("_backward") or op is None or "default" not in op.overloads():
        return False
    wanted = [a for a in op.default._schema.arguments if a.name in arguments or not a.has_default_value()]
    forward_arguments = {
        a.name: arguments.get(a.name, _EPS) for a in wanted if a.name in arguments or str(a.type) == "float"
    }
    try:
        forward_arguments = {**_known_otherwise(wanted, arguments, gradient), **forward_arguments}
        if len(forward_arguments) < len(wanted):
            return False
        result = op.default(**forward_arguments)
    except ERRORS:
        return True
    results = result if isinstance(result, tuple) else (result,)
    chosen = arguments.get("indices") if "indices" not in forward_arguments and len(results) == _WITH_INDICES else None
    if isinstance(chosen, torch.Tensor) and (
        chosen.shape != results[1].shape or _leaves_windows(op, forward_arguments, chosen)
    ):
        return True
    return not elementwise(overload) and isinstance(gradient, torch.Tensor) and gradient.shape != results[0].shape


def _leaves_windows(pooling: Any, arguments: Arguments, indices: torch.Tensor) -> bool:
    """Return True if an index from max pooling lies outside its window.

    The pooling itself gives the bounds for each window: it is called on the coordinates of its input.
    """
    rank = next(a.N for a in pooling.default._schema.arguments if a.N)
    shape = arguments["self"].shape
    for dim, size in enumerate(shape[-rank:], start=1 - rank):
        elements_per_step = math.prod(shape[dim:]) if dim else 1
        coordinates = torch.arange(size).double().view(-1, *[1] * -dim).expand(shape)
        last = pooling.default(**{**arguments, "self": coordinates})[0]
        first = -pooling.default(**{**arguments, "self": -coordinates})[0]
        coordinate = indices.div(elements_per_step, rounding_mode="floor")
        if dim > 1 - rank:
            coordinate = coordinate % size
        if bool(((coordinate < first) | (coordinate > last)).any()):
            return True
    return False


def _known_otherwise(wanted: Iterable[Any], arguments: Arguments, gradient: Any) -> Arguments:
    """Return forward arguments that the backward call names differently, or whose sizes alone it receives."""
    sizes = next((arguments[name] for name in _SIZES if name in arguments), None)
    known: Arguments = {}
    for name, most in ((a.name, a.N) for a in wanted if isinstance(gradient, torch.Tensor)):
        if name == "output_size" and most:
            known[name] = list(gradient.shape[-most:])
        elif name == "self" and sizes is not None:
            known[name] = gradient.new_empty(sizes)
        elif name == "dimension" and "dim" in arguments:
            known[name] = arguments["dim"]
    return known


def _requested(arguments: Arguments) -> torch.dtype | None:
    """Return the result dtype that a call requests by `dtype` or `out`, or None."""
    to, out = arguments.get("dtype"), arguments.get("out")
    return to if isinstance(to, torch.dtype) else out.dtype if isinstance(out, torch.Tensor) else None


def _is_cast_to_integers(overload: str, arguments: Arguments) -> bool:
    """Return True if the call casts floating numbers to integers with a platform-dependent result.

    Numbers that are not finite become different integers on each processor. In accumulating operators, such as
    a sum, it is unspecified if each term is truncated or only the total.
    """
    to = _requested(arguments) or (arguments["self"].dtype if "src" in arguments else None)
    floats = [t for t in tensors(arguments) if t.is_floating_point() or t.is_complex()]
    if not floats or to not in _INTEGERS:
        return False
    return group(overload) == "accumulate" or not all(bool(t.isfinite().all()) for t in floats)


def _counts_beyond(overload: str, arguments: Arguments) -> bool:
    """Return True if the first or last of equally spaced numbers is out of the range of its integer dtype."""
    base, to = base_name(resolve(overload)), _requested(arguments)
    if base not in ("linspace", "logspace") or to not in _INTEGERS:
        return False
    ends = torch.tensor([float(arguments[name]) for name in ("start", "end")], dtype=torch.float64)
    ends = ends if base == "linspace" else torch.tensor(float(arguments["base"]), dtype=torch.float64) ** ends
    return not bool(((ends >= torch.iinfo(to).min) & (ends <= torch.iinfo(to).max)).all())


def _lacks_dimension(overload: str, arguments: Arguments) -> bool:
    """Return True if a transform names a dimension that its tensor lacks.

    ATen then reads the size from unrelated memory.
    """
    if not overload.startswith("aten::_fft_"):
        return False
    return any(not -arguments["self"].dim() <= d < arguments["self"].dim() for d in arguments["dim"])


def _writes_twice(overload: str, arguments: Arguments) -> bool:
    """Return True if several written elements share one address, because it is unspecified which value remains."""
    if base_name(resolve(overload)) != "as_strided_scatter":
        return False
    size, stride = arguments["size"], arguments["stride"]
    if len(size) != len(stride) or math.prod(size) > arguments["src"].numel():
        return False  # ATen refuses the call
    places = torch.zeros(1, dtype=torch.int64)
    for n, step in zip(size, stride, strict=True):
        places = (places[:, None] + torch.arange(n) * step).reshape(-1)
    return len(set(places.tolist())) < places.numel()


def _lacks_segments(overload: str, arguments: Arguments) -> bool:
    """Return True if segments extend beyond their data, or if their description has other rows or results.

    ATen then reads unrelated memory.
    """
    if base_name(resolve(overload)).removeprefix("_").removesuffix("_backward") != "segment_reduce":
        return False
    data, axis, offsets = arguments["data"], arguments["axis"], arguments.get("offsets")
    description = arguments.get("lengths") if offsets is None else offsets
    if description is None or description.dim() == 0 or not -data.dim() <= axis < data.dim():
        return False  # ATen refuses the call
    axis %= data.dim()
    shape = (*data.shape[:axis], description.shape[-1] - (offsets is not None), *data.shape[axis + 1 :])
    ends = description if offsets is not None else description.cumsum(-1)
    beyond = bool(((ends < 0) | (ends > data.shape[axis])).any())
    sized = [arguments[name].shape for name in ("grad", "output") if name in arguments]
    return beyond or description.shape[:-1] != data.shape[:axis] or any(other != shape for other in sized)


def _has_foreign_pivots(overload: str, arguments: Arguments) -> bool:
    """Return True if pivots do not belong to the matrices before them.

    Documented are pivots with shape [*, min(m, n)] for matrices [*, m, n], but `lu_unpack` accepts another
    batch and reads its memory in order (https://docs.pytorch.org/docs/stable/generated/torch.lu.html). Each names
    a row, counted from 1. For LDL, two equal negative numbers mark a 2 x 2 block (LAPACK, dsytrf). For any other
    pivots the solvers read foreign memory.
    """
    named = [(name, value) for name, value in arguments.items() if isinstance(value, torch.Tensor)]
    for (_, matrices), (name, pivots) in itertools.pairwise(named):
        if name.endswith("pivots") and matrices.dim() > 1:
            if pivots.shape != (*matrices.shape[:-2], min(matrices.shape[-2:])):
                return True
            rows = pivots.abs() if base_name(resolve(overload)) == "linalg_ldl_solve" else pivots
            rows = (rows >= 1) & (rows <= matrices.shape[-2])
            return not (bool(rows.all()) and all(map(_is_paired, pivots.reshape(-1, pivots.shape[-1]).tolist())))
    return False


def _is_paired(pivots: list[int]) -> bool:
    """Return True if the negative numbers are pairs with equal neighbours."""
    return all(pivot > 0 or len([*same]) % 2 == 0 for pivot, same in itertools.groupby(pivots))


def _adds_no_product(overload: str, arguments: Arguments) -> bool:
    """Return True if a product with an infinity or NaN is multiplied by 0; BLAS may leave it out."""
    factors = [arguments[name] for name in _FACTORS.get(base_name(resolve(overload)).rstrip("_"), ())]
    return any(not bool(t.isfinite().all()) for t in factors) and arguments.get("alpha") == 0


def _has_infinite_scores(overload: str, arguments: Arguments) -> bool:
    """Return True if a flash-attention query or key is infinite.

    Kernels subtract the largest score from each score. They handle an infinite maximum only if a mask leaves no
    finite score.
    """
    if overload not in _FLASH:
        return False
    return any(bool(arguments[name].isinf().any()) for name in ("query", "key"))


def _has_foreign_labels(overload: str, arguments: Arguments) -> bool:
    """Return True if a label lies outside the classes with probabilities: ATen then reads another sequence's."""
    if base_name(resolve(overload)).removesuffix("_backward") != "_ctc_loss" or arguments["log_probs"].dim() != 3:
        return False
    targets = arguments["targets"]
    return bool(((targets < 0) | (targets >= arguments["log_probs"].shape[2])).any())


def _has_foreign_bags(overload: str, arguments: Arguments) -> bool:
    """Return True if an embedding bag's mode is none of sum, mean and max (0 to 2), or if a bag's size is negative.

    ATen's backward functions check neither, and their answers then depend on which branch comes first.
    """
    if "offset2bag" not in arguments:
        return False
    sizes = arguments.get("bag_size")
    return arguments["mode"] not in range(3) or (isinstance(sizes, torch.Tensor) and bool((sizes < 0).any()))


def _points_at_nothing(overload: str, arguments: Arguments) -> bool:
    """Return True if indices refer to a dimension without elements.

    If there is no other work, ATen returns before it checks them, as in `index_add`.
    """
    index, dim, to = arguments.get("index"), arguments.get("dim"), arguments.get("self")
    if not isinstance(index, torch.Tensor) or index.dtype not in _INTEGERS or not isinstance(to, torch.Tensor):
        return False
    if not isinstance(dim, int) or not to.dim() or not -to.dim() <= dim < to.dim():
        return False
    return bool(index.numel()) and not to.shape[dim]


def _has_no_channels(overload: str, arguments: Arguments) -> bool:
    """Return True if a convolution has output channels but no input channels.

    The documentation promises as many output channels as the weight has, but ATen returns none.
    """
    if base_name(resolve(overload)) not in _CONVOLUTIONS or arguments.get("transposed"):
        return False
    x, weight = arguments["input" if "input" in arguments else "self"], arguments["weight"]
    return x.dim() > 1 and weight.dim() > 1 and not weight.shape[1] and bool(weight.shape[0])


def _normalizes_nothing(overload: str, arguments: Arguments) -> bool:
    """Return True if a layer norm has lines without elements: their mean and deviation have no documented value."""
    return base_name(resolve(overload)) == "native_layer_norm" and 0 in arguments["normalized_shape"]


def _leaves_polynomials_open(overload: str, arguments: Arguments) -> bool:
    """Return True if a polynomial's argument is NaN, or its degree is so high that the recurrence takes seconds.

    For NaN ATen's loop ends before it assigns a result, and returns junk.
    """
    if "_polynomial_" not in overload:
        return False
    degree = torch.as_tensor(arguments["n"])
    return any(bool(t.isnan().any()) for t in tensors(arguments)) or bool((degree > _MAX_DEGREE).any())


def _has_other_channels(overload: str, arguments: Arguments) -> bool:
    """Return True if an argument of a batch norm has not one value for each channel, which ATen does not check.

    An argument without elements counts as absent.
    """
    if "batch_norm" not in overload or not isinstance(arguments.get("input"), torch.Tensor):
        return False
    channels = arguments["input"].shape[1:2]
    by_channel = (arguments.get(name) for name in _BY_CHANNEL)
    return any(isinstance(t, torch.Tensor) and t.numel() and t.shape != channels for t in by_channel)


def _has_gradient_of_another_shape(overload: str, arguments: Arguments) -> bool:
    """Return True if the gradient for a convolution has not the shape of its result, which ATen does not check."""
    if base_name(resolve(overload)) != "convolution_backward":
        return False
    names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    tensors_on_meta = (arguments[name].to("meta") for name in ("input", "weight"))
    try:
        result = torch.ops.aten.convolution.default(*tensors_on_meta, None, *(arguments[name] for name in names))
    except ERRORS:
        return True
    return bool(result.shape != arguments["grad_output"].shape)


def _converts_gradients(overload: str, arguments: Arguments) -> bool:
    """Return True if a softmax's input has a dtype that gives no such gradient: softmax keeps it, or widens float16."""
    if base_name(resolve(overload)) not in ("_softmax_backward_data", "_log_softmax_backward_data"):
        return False
    gradient, dtype = arguments["grad_output"].dtype, arguments["input_dtype"]
    return dtype != gradient and (gradient, dtype) != (torch.float32, torch.float16)


def _eliminates_denormals(overload: str, arguments: Arguments) -> bool:
    """Return True if all numbers in an eliminated matrix are denormal: a device may replace them by zeros."""
    name = base_name(resolve(overload)).removeprefix("_")
    if name not in _ELIMINATED or not name.startswith("linalg_"):
        return False
    matrix = tensors(arguments)[0]
    return bool(matrix.numel()) and 0 < float(matrix.abs().max()) < torch.finfo(matrix.dtype).tiny


_FAULTS = (
    _has_other_channels,
    _has_gradient_of_another_shape,
    _converts_gradients,
    _eliminates_denormals,
    _leaves_polynomials_open,
    _normalizes_nothing,
    _has_no_channels,
    _points_at_nothing,
    _has_foreign_labels,
    _has_foreign_bags,
    _has_foreign_pivots,
    _adds_no_product,
    _has_infinite_scores,
    _is_cast_to_integers,
    _counts_beyond,
    _lacks_dimension,
    _follows_nothing,
    _writes_twice,
    _lacks_segments,
)
