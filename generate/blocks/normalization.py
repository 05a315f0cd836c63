"""Normalization by the mean and deviation of a channel or of a group of channels, and its gradients."""

import math

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide, root
from blocks.elementwise import elementwise
from blocks.reduction import reduce
from blocks.tiles import in_tiles
from blocks.windows import window_result


@triton.jit
def central_moment(x, eps):
    """An element as mean, squares, count and sum (`moments` of blocks/reduction.py)."""
    return x, tl.zeros_like(x), tl.zeros_like(x) + 1, x


@triton.jit
def statistics(mean, squares, n, total, count, eps):
    """Mean and inverse deviation twice, and the unbiased variance. An infinite mean is known by the sum alone."""
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
    """total, product: of weighted gradients, sums of them and of their products with what was normalized. The mean is
    taken away first: so little is rounded of what is left where all gradients are alike."""
    return rstd * ((grad * weight - total / count) - (x - mean) * rstd * (product / count))


@triton.jit
def scaled_back(grad, rstd, weight):
    return grad * (rstd * weight)


@triton.jit
def weighted_sums(total, product, weight):
    return total * weight, product * weight


def statistics_dtypes(x, parameters):
    """What to compute in, and the dtype of what is kept: fp32 where a parameter is of fp32. Raises RuntimeError."""
    given = [t for t in parameters if t is not None]
    dtype = given[0].dtype if given else x.dtype
    half = x.dtype in (torch.float16, torch.bfloat16)
    if dtype != x.dtype and not (half and dtype == torch.float32) or any([t.dtype != dtype for t in given]):
        raise RuntimeError(f"normalization of {x.dtype} with parameters of {[t.dtype for t in given]}")
    return torch.float32 if half else x.dtype, dtype


def by_channel(t, x):
    """A vector, one element for each channel of x, in dimensions of x; a number as it is."""
    return t.view([1, -1] + [1] * (x.dim() - 2)) if isinstance(t, torch.Tensor) else t


def expect_channels(x, *vectors):
    if x.dim() < 2 or x.numel() == 0:
        raise RuntimeError(f"batch normalization of {tuple(x.shape)}")
    for t in vectors:
        if t is not None and (t.dim() != 1 or t.shape[0] != x.shape[1]):
            raise RuntimeError(f"{tuple(t.shape)} for {x.shape[1]} channels")


def normalize(x, mean, rstd, weight, bias, out, common):
    """(x - mean) * rstd * weight + bias in `out`; all but x and out are broadcast."""
    weight, bias = 1.0 if weight is None else weight, -0.0 if bias is None else bias
    return in_tiles(normalized, x, mean, rstd, weight, bias, common=common, out=out)


def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps):
    """(result, mean, inverse deviation); running statistics are written in training."""
    expect_channels(x, weight, bias, running_mean, running_var)
    common, dtype = statistics_dtypes(x, (weight, bias, running_mean, running_var))
    out = window_result(x, x.shape)
    if training:
        dims = [d for d in range(x.dim()) if d != 1]
        kinds = common, common, dtype, dtype, common
        own = {"dtype": kinds, "map": central_moment, "finish": statistics, "numbers": (eps,), "common": common}
        mean, rstd, saved_mean, saved_rstd, variance = reduce("moments", [x], dims, **own)
        for running, value in ((running_mean, mean), (running_var, variance)):
            if running is not None:
                numbers = momentum, 1 - momentum
                elementwise(moved, running, value, numbers=numbers, common=common, out=running)
    else:
        mean = running_mean
        rstd = elementwise(inverse_deviation, running_var, numbers=(eps,), common=common)
        saved_mean, saved_rstd = [torch.empty(0, dtype=dtype, device=x.device) for _ in range(2)]
    own = [by_channel(t, x) for t in (mean, rstd, weight, bias)]
    normalize(x, *own, out, common)
    return out, saved_mean, saved_rstd


def batch_norm_gradients(grad, x, weight, running, saved, train, eps, output_mask):
    """running, saved: mean and variance, mean and inverse deviation."""
    mean, rstd = saved if train else running
    expect_channels(x, weight, mean, rstd)
    if grad.shape != x.shape or mean is None or rstd is None:
        raise RuntimeError(f"gradient {tuple(grad.shape)} of {tuple(x.shape)}, or no statistics")
    common, dtype = statistics_dtypes(x, (weight, *running, *saved))
    if not train:
        rstd = elementwise(inverse_deviation, rstd, numbers=(eps,), common=common)
    views = [by_channel(t, x) for t in (mean, rstd)]
    grad_input = grad_weight = grad_bias = None
    if train or output_mask[1] or output_mask[2]:
        dims = [d for d in range(x.dim()) if d != 1]
        inputs = [x, grad, *[t.expand(x.shape) for t in views]]
        kinds = common, common, dtype, dtype
        own = {"dtype": kinds, "map": gradient_and_product, "finish": both_sums, "common": common}
        total, product, grad_bias, grad_weight = reduce("sums", inputs, dims, **own)
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
    """As `normalized_back`, where the weight is the same for all that the sums are of."""
    return rstd * weight * (grad - (total + (x - mean) * rstd * product) / count)


def by_group(t, sizes, group):
    """t of [N, C, ...] as [N, group, C / group, ...]; sizes: N, C and the number of elements of a channel."""
    N, C, _ = sizes
    if t.dim() < 2 or tuple(t.shape[:2]) != (N, C):
        t = t.view(sizes)
    return t.view([N, group, C // group, *(t.shape[2:] or [1])])


def expect_groups(x, sizes, group, *vectors):
    if group < 1 or sizes[1] % group or x.numel() != math.prod(sizes) or min(sizes) < 0:
        raise RuntimeError(f"{group} groups in {tuple(x.shape)}, to be of {sizes}")
    for t in vectors:
        if t is not None and t.numel() != sizes[1]:
            raise RuntimeError(f"{tuple(t.shape)} for {sizes[1]} channels")


def group_norm(x, weight, bias, sizes, group, eps):
    expect_groups(x, sizes, group, weight, bias)
    common, dtype = statistics_dtypes(x, (weight, bias))
    out = window_result(x, x.shape)
    grouped = by_group(x, sizes, group)
    dims = list(range(2, grouped.dim()))
    kinds = common, common, dtype, dtype, common
    own = {"dtype": kinds, "map": central_moment, "finish": statistics, "numbers": (eps,), "common": common}
    mean, rstd, saved_mean, saved_rstd, _ = reduce("moments", [grouped], dims, **own)
    ones = [1] * (grouped.dim() - 2)
    mean, rstd = mean.view([*mean.shape, *ones]), rstd.view([*rstd.shape, *ones])
    weight, bias = [None if t is None else t.view([1, *grouped.shape[1:3], *ones[1:]]) for t in (weight, bias)]
    normalize(grouped, mean, rstd, weight, bias, by_group(out, sizes, group), common)
    return out, saved_mean, saved_rstd


def group_norm_gradients(grad, x, mean, rstd, weight, sizes, group, output_mask):
    expect_groups(x, sizes, group, weight)
    N, C, _ = sizes
    if grad.numel() != x.numel() or mean.numel() != N * group or rstd.numel() != N * group:
        raise RuntimeError(f"gradient {tuple(grad.shape)} of {tuple(x.shape)}, statistics {tuple(mean.shape)}")
    common, _ = statistics_dtypes(x, (weight, mean, rstd))
    grouped, grads = by_group(x, sizes, group), by_group(grad, sizes, group)
    ones = [1] * (grouped.dim() - 2)
    means, rstds = [t.view([N, group, *ones]) for t in (mean, rstd)]
    inputs = [grouped, grads, means.expand(grouped.shape), rstds.expand(grouped.shape)]
    own = {"dtype": (common,) * 4, "map": gradient_and_product, "finish": both_sums, "common": common}
    total, product, _, _ = reduce("sums", inputs, list(range(3, grouped.dim())), **own)
    grad_input = grad_weight = grad_bias = None
    if output_mask[0]:
        weights = [] if weight is None else [weight.view([1, *grouped.shape[1:3]]).expand(total.shape)]
        how = {"map": weighted_sums} if weights else {"map": two_values}
        of_group = {"dtype": (common,) * 4, "finish": both_sums, "common": common, **how}
        sums = [t.view([N, group, *ones]) for t in reduce("sums", [total, product, *weights], [2], **of_group)[:2]]
        weights = 1.0 if weight is None else weight.view([1, *grouped.shape[1:3], *ones[1:]])
        grad_input = window_result(x, x.shape)
        operands = grouped, grads, means, rstds, weights, *sums
        count = max(grouped.numel() // max(N * group, 1), 1)
        out = by_group(grad_input, sizes, group)
        in_tiles(normalized_back, *operands, count, common=common, out=out)
    if output_mask[1] and weight is not None:
        grad_weight = reduce("sum", [product.view(N, C)], [0], dtype=weight.dtype, common=common)
    if output_mask[2] and weight is not None:
        grad_bias = reduce("sum", [total.view(N, C)], [0], dtype=weight.dtype, common=common)
    return grad_input, grad_weight, grad_bias


@triton.jit
def two_values(a, b):
    return a, b
