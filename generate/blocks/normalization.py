"""Normalization by the mean and deviation over a channel or a channel group, and its gradients."""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.elementwise import elementwise
from blocks.offsets import plain, plain_value
from blocks.reduction import reduce
from blocks.tiles import copy_into, in_tiles
from blocks.types import compute_types, convert, number_argument, number_value
from blocks.whole_groups import dense_groups, group_gradients_whole, group_norm_whole
from blocks.windows import window_result


@triton.jit
def central_moment(x, eps):
    """Return an element as (mean, squares, count, sum), for kind `moments` of blocks/reduction.py."""
    return x, tl.zeros_like(x), tl.zeros_like(x) + 1, x


@triton.jit
def statistics(mean, squares, n, total, count, eps):
    """Return the mean and inverse deviation twice, and the unbiased variance.

    An infinite mean comes out as NaN from the update, so the sum replaces it.
    """
    mean = tl.where((mean == mean) | (n == 0), mean, total / count)
    rstd = divide(tl.zeros_like(mean) + 1, root(squares / count + eps))
    return mean, rstd, mean, rstd, squares / (count - 1)


@triton.jit
def inverse_deviation(variance, eps):
    return divide(tl.zeros_like(variance) + 1, root(variance + eps))


@triton.jit
def normalized(x, mean, rstd, weight, bias):
    return (x - mean) * (rstd * weight) + bias


@triton.jit
def moved(running, value, momentum, rest):
    return running * rest + value * momentum


@triton.jit
def gradient_and_product(x, grad, mean, rstd):
    return grad, grad * ((x - mean) * rstd)


@triton.jit
def both_sums(total, product, count):
    return total, product, total, product


@triton.jit
def normalized_back(x, grad, mean, rstd, weight, total, product, count):
    """Return the gradient of x.

    `total` and `product` are sums of the weighted gradients, and of their products with the normalized
    values. The mean gradient is subtracted first, so that little rounding error remains if all gradients are
    alike.
    """
    return rstd * ((grad * weight - total / count) - (x - mean) * rstd * (product / count))


@triton.jit
def scaled_back(grad, rstd, weight):
    return grad * (rstd * weight)


@triton.jit
def weighted_sums(total, product, weight):
    return total * weight, product * weight


def statistics_dtypes(x, parameters):
    """Return the dtype to compute in, and the dtype for saved statistics.

    The latter is the parameters' dtype, or x's if there are none. Parameters for half-precision x may be
    fp32. Raises RuntimeError for any other mix of dtypes.
    """
    tensors = [t for t in parameters if t is not None]
    dtype = tensors[0].dtype if tensors else x.dtype
    half = x.dtype in (torch.float16, torch.bfloat16)
    if dtype != x.dtype and not (half and dtype == torch.float32) or any([t.dtype != dtype for t in tensors]):
        raise RuntimeError(f"cannot normalize {x.dtype} with parameters {[t.dtype for t in tensors]}")
    return torch.float32 if half else x.dtype, dtype


def batch_dtypes(x, parameters):
    """Return the dtypes from `statistics_dtypes` for batch normalization.

    Both are fp32 if x has half precision and some parameters are fp32 and others are not, as on CUDA.
    """
    dtypes = {t.dtype for t in parameters if t is not None}
    if x.dtype in (torch.float16, torch.bfloat16) and dtypes == {x.dtype, torch.float32}:
        return torch.float32, torch.float32
    return statistics_dtypes(x, parameters)


def by_channel(t, x):
    """Return a vector with one element per channel as a view that broadcasts to x; a number is returned as it is."""
    return t.view([1, -1] + [1] * (x.dim() - 2)) if isinstance(t, torch.Tensor) else t


def expect_channels(x, *vectors):
    if x.dim() < 2 or x.numel() == 0:
        raise RuntimeError(f"batch normalization needs [N, C, ...] without empty dimensions, got {tuple(x.shape)}")
    for t in vectors:
        if t is not None and (t.dim() != 1 or t.shape[0] != x.shape[1]):
            raise RuntimeError(f"expected one value for each channel ({x.shape[1]}), got {tuple(t.shape)}")


def normalize(x, mean, rstd, weight, bias, out, common):
    """Compute (x - mean) * rstd * weight + bias in `out`; all operands but x and out are broadcast."""
    # adding -0.0 keeps the sign of every zero
    weight, bias = 1.0 if weight is None else weight, -0.0 if bias is None else bias
    return in_tiles(normalized, x, mean, rstd, weight, bias, common=common, out=out)


@triton.jit
def moved_pair_kernel(
    running_ptrs, ptrs, momentum, rest, n, COMMON: tl.constexpr, OPMATH: tl.constexpr, BLOCK: tl.constexpr
):
    """Update both running statistics of n channels in one launch.

    Args:
        running_ptrs: Running mean and variance, [n] each, contiguous, read and written.
        ptrs: New mean and variance, [n] each, contiguous, read.
        momentum: Weight of the new values, encoded by `number_argument`.
        rest: Weight of the running values, 1 - momentum, encoded by `number_argument`.
        n: Number of channels, encoded by `plain`.
        COMMON: Type to which the running statistics are promoted.
        OPMATH: Type to compute in.
        BLOCK: Channels per program instance.
    """
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    momentum, rest = number_value(momentum, OPMATH), number_value(rest, OPMATH)
    for k in tl.static_range(2):
        running = convert(tl.load(running_ptrs[k] + i, mask=i < plain_value(n)), COMMON).to(OPMATH)
        value = moved(running, tl.load(ptrs[k] + i, mask=i < plain_value(n)), momentum, rest)
        tl.store(running_ptrs[k] + i, convert(value, running_ptrs[k].dtype.element_ty), mask=i < plain_value(n))


def move_running(running, values, momentum, common):
    """Move the running mean and variance towards these values; either statistic may be None."""
    if all([t is not None and t.is_contiguous() for t in running]):
        COMMON, OPMATH = compute_types(common)
        n = values[0].numel()
        numbers = [number_argument(v, common) for v in (momentum, 1 - momentum)]
        BLOCK = 256
        grid = (triton.cdiv(n, BLOCK),)
        moved_pair_kernel[grid](running, values, *numbers, plain(n), COMMON=COMMON, OPMATH=OPMATH, BLOCK=BLOCK)
        return
    for statistic, value in zip(running, values, strict=True):
        if statistic is not None:
            elementwise(moved, statistic, value, numbers=(momentum, 1 - momentum), common=common, out=statistic)


def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """Return (result, mean, inverse deviation); in training the running statistics are updated in place.

    Without training the two saved statistics are empty tensors.
    """
    expect_channels(x, weight, bias, running_mean, running_var)
    common, dtype = batch_dtypes(x, (weight, bias, running_mean, running_var))
    out = window_result(x, x.shape)
    if training:
        dims = [d for d in range(x.dim()) if d != 1]
        kinds = common, common, dtype, dtype, common
        arguments = {"dtype": kinds, "map": central_moment, "finish": statistics, "numbers": (eps,), "common": common}
        mean, rstd, saved_mean, saved_rstd, variance = reduce("moments", [x], dims, **arguments)
        move_running((running_mean, running_var), (mean, variance), momentum, common)
    else:
        mean = running_mean
        rstd = elementwise(inverse_deviation, running_var, numbers=(eps,), common=common)
        saved_mean, saved_rstd = [torch.empty(0, dtype=dtype, device=x.device) for _ in range(2)]
    arguments = [by_channel(t, x) for t in (mean, rstd, weight, bias)]
    normalize(x, *arguments, out, common)
    return out, saved_mean, saved_rstd


def batch_norm_gradients(grad, x, weight, running, saved, train, eps, output_mask):
    """Return the gradients of x, weight and bias, or None for those that output_mask leaves out.

    `running` is (mean, variance) and `saved` is (mean, inverse deviation). The saved statistics are used in
    training.
    """
    mean, rstd = saved if train else running
    expect_channels(x, weight, mean, rstd)
    if grad.shape != x.shape or mean is None or rstd is None:
        raise RuntimeError(
            f"gradient {tuple(grad.shape)} does not fit input {tuple(x.shape)}, or statistics are missing"
        )
    common, dtype = batch_dtypes(x, (weight, *running, *saved))
    dtype = dtype if weight is None else weight.dtype
    if not train:
        rstd = elementwise(inverse_deviation, rstd, numbers=(eps,), common=common)
    views = [by_channel(t, x) for t in (mean, rstd)]
    grad_input = grad_weight = grad_bias = None
    if train or output_mask[1] or output_mask[2]:
        dims = [d for d in range(x.dim()) if d != 1]
        inputs = [x, grad, *[t.expand(x.shape) for t in views]]
        kinds = common, common, dtype, dtype
        how = {"dtype": kinds, "map": gradient_and_product, "finish": both_sums, "common": common}
        total, product, grad_bias, grad_weight = reduce("sums", inputs, dims, **how)
    weights = 1.0 if weight is None else by_channel(weight, x)
    if output_mask[0] and train:
        n = x.numel() // x.shape[1]
        sums = [by_channel(t, x) for t in (total, product)]
        grad_input = window_result(x, x.shape)
        operands = x, grad, *views, weights, *sums
        in_tiles(normalized_back_by_weight, *operands, n, common=common, out=grad_input)
    elif output_mask[0]:
        grad_input = window_result(x, x.shape)
        in_tiles(scaled_back, grad, views[1], weights, common=common, out=grad_input)
    return grad_input, grad_weight if output_mask[1] else None, grad_bias if output_mask[2] else None


@triton.jit
def normalized_back_by_weight(x, grad, mean, rstd, weight, total, product, count):
    """Return the value of `normalized_back` if the weight is the same for all elements that the sums cover."""
    return rstd * weight * (grad - (total + (x - mean) * rstd * product) / count)


def by_group(t, sizes, group):
    """Return t of [N, C, ...] as a view [N, group, C / group, ...].

    `sizes` has N, C and the elements per channel.
    """
    N, C, _ = sizes
    if t.dim() < 2 or tuple(t.shape[:2]) != (N, C):
        t = t.view(sizes)
    return t.view([N, group, C // group, *(t.shape[2:] or [1])])


def by_images(t, sizes):
    """Return t, or a dense copy if t is not contiguous and does not begin with dimensions N and C."""
    if t.is_contiguous() or tuple(t.shape[:2]) == tuple(sizes[:2]):
        return t
    return copy_into(torch.empty(t.shape, dtype=t.dtype, device=t.device), t)


def expect_groups(x, sizes, group, *vectors):
    if group < 1 or sizes[1] % group or x.numel() != math.prod(sizes) or min(sizes) < 0:
        raise RuntimeError(f"{group} groups do not divide input {tuple(x.shape)} with sizes {sizes}")
    for t in vectors:
        if t is not None and t.numel() != sizes[1]:
            raise RuntimeError(f"expected one value for each channel ({sizes[1]}), got {tuple(t.shape)}")


def group_norm(x, weight, bias, sizes, group, eps):
    """Apply group normalization and return (result, mean, inverse deviation).

    `sizes` has N, C and the elements per channel. Dense groups that fit into one program take the path of
    blocks/whole_groups.py.
    """
    expect_groups(x, sizes, group, weight, bias)
    common, dtype = statistics_dtypes(x, (weight, bias))
    x = by_images(x, sizes)
    out = window_result(x, x.shape)
    if dense_groups(sizes, group, x, out, weight, bias):
        statistics_saved = group_norm_whole(x, weight, bias, out, sizes, group, eps, common, dtype)
        if statistics_saved is not None:
            return out, *statistics_saved
    grouped = by_group(x, sizes, group)
    dims = list(range(2, grouped.dim()))
    kinds = common, common, dtype, dtype, common
    how = {"dtype": kinds, "map": central_moment, "finish": statistics, "numbers": (eps,), "common": common}
    mean, rstd, saved_mean, saved_rstd, _ = reduce("moments", [grouped], dims, **how)
    ones = [1] * (grouped.dim() - 2)
    mean, rstd = mean.view([*mean.shape, *ones]), rstd.view([*rstd.shape, *ones])
    weight, bias = [None if t is None else t.view([1, *grouped.shape[1:3], *ones[1:]]) for t in (weight, bias)]
    normalize(grouped, mean, rstd, weight, bias, by_group(out, sizes, group), common)
    return out, saved_mean, saved_rstd


def group_norm_gradients(grad, x, mean, rstd, weight, sizes, group, output_mask):
    """Return the gradients of x, weight and bias, or None for those that output_mask leaves out.

    `sizes` is as in `group_norm`; mean and rstd are its saved statistics.
    """
    expect_groups(x, sizes, group, weight)
    N, C, _ = sizes
    if grad.numel() != x.numel() or mean.numel() != N * group or rstd.numel() != N * group:
        raise RuntimeError(
            f"gradient {tuple(grad.shape)} and statistics {tuple(mean.shape)} do not fit input {tuple(x.shape)}"
        )
    common, _ = statistics_dtypes(x, (weight, mean, rstd))
    x, grad = by_images(x, sizes), by_images(grad, sizes)
    if dense_groups(sizes, group, x, grad, mean, rstd, weight):
        grad_input = torch.empty_like(x) if output_mask[0] else None
        total, product = group_gradients_whole(grad, x, mean, rstd, weight, grad_input, sizes, group, common)
    else:
        statistics_of = mean, rstd
        total, product, grad_input = gradients_by_tiles(
            grad, x, statistics_of, weight, sizes, group, common, output_mask[0]
        )
    grad_weight = grad_bias = None
    if output_mask[1] and weight is not None:
        grad_weight = reduce("sum", [product.view(N, C)], [0], dtype=weight.dtype, common=common)
    if output_mask[2] and weight is not None:
        grad_bias = reduce("sum", [total.view(N, C)], [0], dtype=weight.dtype, common=common)
    return grad_input, grad_weight, grad_bias


def gradients_by_tiles(grad, x, of_groups, weight, sizes, group, common, wanted):
    """Return sums of gradients and of products, [N, group, C / group], and the gradient of x if it is wanted."""
    N, C, _ = sizes
    mean, rstd = of_groups
    grouped, grads = by_group(x, sizes, group), by_group(grad, sizes, group)
    ones = [1] * (grouped.dim() - 2)
    means, rstds = [t.view([N, group, *ones]) for t in (mean, rstd)]
    inputs = [grouped, grads, means.expand(grouped.shape), rstds.expand(grouped.shape)]
    how = {"dtype": (common,) * 4, "map": gradient_and_product, "finish": both_sums, "common": common}
    total, product, _, _ = reduce("sums", inputs, list(range(3, grouped.dim())), **how)
    grad_input = None
    if wanted:
        weights = [] if weight is None else [weight.view([1, *grouped.shape[1:3]]).expand(total.shape)]
        map_argument = {"map": weighted_sums} if weights else {"map": two_values}
        of_group = {"dtype": (common,) * 4, "finish": both_sums, "common": common, **map_argument}
        sums = [t.view([N, group, *ones]) for t in reduce("sums", [total, product, *weights], [2], **of_group)[:2]]
        weights = 1.0 if weight is None else weight.view([1, *grouped.shape[1:3], *ones[1:]])
        grad_input = window_result(x, x.shape)
        operands = grouped, grads, means, rstds, weights, *sums
        count = max(grouped.numel() // max(N * group, 1), 1)
        out = by_group(grad_input, sizes, group)
        in_tiles(normalized_back, *operands, count, common=common, out=out)
    return total, product, grad_input


@triton.jit
def two_values(a, b):
    return a, b
