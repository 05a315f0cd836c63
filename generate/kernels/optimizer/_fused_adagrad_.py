"""aten::_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *,
    float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor?
    found_inf=None) -> ()
aten::_fused_adagrad_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] state_steps,
    *, Tensor lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor?
    found_inf=None) -> ()

The algorithm is Duchi et al., Adaptive subgradient methods, 2011.
"""

import triton
from blocks.arithmetic import divide, root
from blocks.elementwise import multi_tensor_apply
from blocks.optimizer import check_geometry, steps_taken, unless_inf, unscaled

OVERLOADS = ("aten::_fused_adagrad_", "aten::_fused_adagrad_.tensor_lr")
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def adagrad(param, grad, total, step, lr, grad_scale, found_inf, sign, lr_decay, weight_decay, eps):
    true_grad = unscaled(grad, grad_scale)
    g = true_grad * sign + weight_decay * param
    new_total = total + g * g
    rate = lr / (1 + (steps_taken(step, param.dtype) - 1) * lr_decay)
    new = param - rate * divide(g, root(new_total) + eps)
    return (
        unless_inf(found_inf, new, param),
        unless_inf(found_inf, true_grad, grad),
        unless_inf(found_inf, new_total, total),
    )


def wrapper(
    self,
    grads,
    state_sums,
    state_steps,
    *,
    lr,
    lr_decay,
    weight_decay,
    eps,
    maximize,
    grad_scale=None,
    found_inf=None,
):
    check_geometry(self, grads, state_sums)
    numbers = -1 if maximize else 1, lr_decay, weight_decay, eps
    lists = self, grads, state_sums, state_steps
    shared = lr, 1 if grad_scale is None else grad_scale, 0 if found_inf is None else found_inf
    multi_tensor_apply(adagrad, (*lists, *shared, *numbers), (self, None if grad_scale is None else grads, state_sums))
