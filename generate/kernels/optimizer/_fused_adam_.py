"""aten::_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs,
    Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay,
    float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()
aten::_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[]
    exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float
    weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()

Weight decay is added to the gradient.
"""

import math

from blocks.elementwise import multi_tensor_apply
from blocks.optimizer import adam_step, check_geometry

OVERLOADS = ("aten::_fused_adam_", "aten::_fused_adam_.tensor_lr")
DTYPES = ("bfloat16", "float16", "float32", "float64")


def wrapper(
    self,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    *,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    amsgrad,
    maximize,
    grad_scale=None,
    found_inf=None,
):
    largest = max_exp_avg_sqs if amsgrad else None
    check_geometry(self, grads, exp_avgs, exp_avg_sqs, *([largest] if amsgrad else []))
    logs = [math.log(beta) if beta else -math.inf for beta in (beta1, beta2)]
    numbers = -1 if maximize else 1, 1 - beta1, beta2, 1 - beta2, *logs, weight_decay, 0, eps
    lists = self, grads, exp_avgs, exp_avg_sqs, largest or 0, state_steps
    shared = lr, 1 if grad_scale is None else grad_scale, 0 if found_inf is None else found_inf
    outs = self, None if grad_scale is None else grads, exp_avgs, exp_avg_sqs, largest
    multi_tensor_apply(adam_step, (*lists, *shared, *numbers), outs)
