"""Optimizer steps; grad_scale is the loss scale or 1, and found_inf is 1 if nothing may change, else 0."""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root


def is_dense(x):
    """Return True if the elements fill their memory without overlap, in any dimension order."""
    reached = 1
    for stride, size in sorted([(s, n) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1]):
        if stride != reached:
            return False
        reached *= size
    return True


def check_geometry(*lists):
    """Check that tensors at the same list position are dense and agree in dtype and layout.

    Raises RuntimeError otherwise, as ATen does.
    """
    if any([len(tensors) != len(lists[0]) for tensors in lists]):
        raise RuntimeError(f"tensor lists have different lengths: {[len(tensors) for tensors in lists]}")
    for first, *rest in zip(*lists, strict=True):
        layout = first.dtype, first.shape, first.stride()
        if not is_dense(first) or any([(t.dtype, t.shape, t.stride()) != layout for t in rest]):
            raise RuntimeError(
                "a parameter, its gradient and its state must be dense and share dtype, shape and strides"
            )


@triton.jit
def unscaled(grad, grad_scale):
    if grad_scale != 1:
        grad = divide(grad, grad_scale)
    return grad


@triton.jit
def unless_inf(found_inf, new, old):
    return tl.where(found_inf == 1, old, new)


@triton.jit
def steps_taken(step, KIND: tl.constexpr):
    """Return the step count, which ATen keeps in fp32 for any parameter dtype."""
    return step.to(tl.float32).to(KIND)


@triton.jit
def adam_step(
    param,
    grad,
    m,
    v,
    max_v,
    step,
    lr,
    grad_scale,
    found_inf,
    sign,
    rest1,
    beta2,
    rest2,
    log_beta1,
    log_beta2,
    l2,
    decay,
    eps,
):
    """Return the updated (param, grad, m, v, largest v) for one Adam step (arXiv:1412.6980, algorithm 1).

    max_v is the largest v so far for AMSGrad, else 0. rest1 and rest2 are 1 - beta. l2 is weight decay inside
    the gradient, and `decay` is decoupled weight decay (arXiv:1711.05101). sign multiplies the gradient. The
    bias corrections 1 - beta^step are computed in fp64 from log(beta), because they cancel. The old values
    are returned if found_inf is 1.
    """
    true_grad = unscaled(grad, grad_scale)
    g = true_grad * sign + l2 * param
    new_m = m + rest1 * (g - m)
    new_v = beta2 * v + rest2 * g * g
    largest = tl.where(new_v < max_v, max_v, new_v)
    steps = steps_taken(step, tl.float64)
    correction1 = (1 - tl.exp(steps * log_beta1)).to(param.dtype)
    correction2 = (1 - tl.exp(steps * log_beta2)).to(param.dtype)
    change = lr / correction1 * divide(new_m, divide(root(largest), root(correction2)) + eps)
    return (
        unless_inf(found_inf, param - lr * decay * param - change, param),
        unless_inf(found_inf, true_grad, grad),
        unless_inf(found_inf, new_m, m),
        unless_inf(found_inf, new_v, v),
        unless_inf(found_inf, largest, max_v),
    )
