"""Steps of optimizers. grad_scale: what the loss was scaled by, or 1. found_inf: 1 where nothing changes, or 0."""

import triton
import triton.language as tl
from blocks.arithmetic import divide, root


def is_dense(x):
    """Whether the elements fill their memory, in any order of the dimensions, without overlap."""
    reached = 1
    for stride, size in sorted([(s, n) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1]):
        if stride != reached:
            return False
        reached *= size
    return True


def check_geometry(*lists):
    """Raises RuntimeError as ATen where tensors at one place of the lists are not dense and of one dtype and layout."""
    if any([len(tensors) != len(lists[0]) for tensors in lists]):
        raise RuntimeError(f"lists of {[len(tensors) for tensors in lists]} tensors")
    for first, *others in zip(*lists, strict=True):
        layout = first.dtype, first.shape, first.stride()
        if not is_dense(first) or any([(t.dtype, t.shape, t.stride()) != layout for t in others]):
            raise RuntimeError("a parameter, its gradient and its state differ in dtype or layout, or are not dense")


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
    """The number of steps, which ATen takes in fp32 whatever the dtype of the parameters."""
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
    """arXiv:1412.6980, algorithm 1: param, grad, m, v and the largest v so far (max_v: of AMSGrad, or 0).

    rest: 1 - beta. l2: weight decay as part of the gradient; decay: decoupled from it (arXiv:1711.05101). The bias
    corrections 1 - beta^step are taken in fp64 from log(beta), because they cancel.
    """
    own_grad = unscaled(grad, grad_scale)
    g = own_grad * sign + l2 * param
    new_m = m + rest1 * (g - m)
    new_v = beta2 * v + rest2 * g * g
    largest = tl.where(new_v < max_v, max_v, new_v)
    steps = steps_taken(step, tl.float64)
    correction1 = (1 - tl.exp(steps * log_beta1)).to(param.dtype)
    correction2 = (1 - tl.exp(steps * log_beta2)).to(param.dtype)
    change = lr / correction1 * divide(new_m, divide(root(largest), root(correction2)) + eps)
    return (
        unless_inf(found_inf, param - lr * decay * param - change, param),
        unless_inf(found_inf, own_grad, grad),
        unless_inf(found_inf, new_m, m),
        unless_inf(found_inf, new_v, v),
        unless_inf(found_inf, largest, max_v),
    )
