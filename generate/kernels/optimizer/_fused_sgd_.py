"""aten::_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay,
    float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor?
    grad_scale=None, Tensor? found_inf=None) -> ()
aten::_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float
    weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor?
    grad_scale=None, Tensor? found_inf=None) -> ()

Without momentum, the buffer list is empty. In the first step, each buffer becomes the gradient.
"""

import triton
import triton.language as tl
from blocks.elementwise import multi_tensor_apply
from blocks.optimizer import check_geometry, unless_inf, unscaled

OVERLOADS = ("aten::_fused_sgd_", "aten::_fused_sgd_.tensor_lr")
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def sgd(param, grad, buffer, lr, grad_scale, found_inf, sign, weight_decay, momentum, rest, first, nesterov):
    """Return the updated (param, grad, buffer).

    `rest` is 1 - dampening. `first` and `nesterov` are 1 or 0.
    """
    true_grad = unscaled(grad, grad_scale)
    g = true_grad * sign + weight_decay * param
    new = tl.where(first == 1, g, momentum * buffer + rest * g)
    change = tl.where(nesterov == 1, g + momentum * new, new)
    return (
        unless_inf(found_inf, param - lr * change, param),
        unless_inf(found_inf, true_grad, grad),
        unless_inf(found_inf, new, buffer),
    )


def wrapper(
    self,
    grads,
    momentum_buffer_list,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale=None,
    found_inf=None,
):
    buffers = momentum_buffer_list or None
    check_geometry(self, grads, *([buffers] if buffers else []))
    if buffers and momentum == 0:
        raise RuntimeError("momentum buffers need a momentum other than 0")
    shared = lr, 1 if grad_scale is None else grad_scale, 0 if found_inf is None else found_inf
    first, use_nesterov = is_first_step or not buffers, nesterov and bool(buffers)
    numbers = -1 if maximize else 1, weight_decay, momentum, 1 - dampening, first, use_nesterov
    outs = self, None if grad_scale is None else grads, buffers
    multi_tensor_apply(sgd, (self, grads, buffers or 0, *shared, *numbers), outs)
