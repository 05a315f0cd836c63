"""aten::_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs,
    Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay,
    float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()
aten::_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[]
    exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float
    weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()

One launch a parameter (arXiv:1412.6980, algorithm 1; weight decay is part of the gradient); state and arithmetic are
fp32, but for the bias corrections 1 - beta^step, taken in fp64 from log(beta) because they cancel. Where found_inf is 1
nothing changes; where grad_scale is given the unscaled gradient is written back, as ATen does.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_fused_adam_", "aten::_fused_adam_.tensor_lr")
DTYPES = ("bfloat16", "float16", "float32")


@triton.jit
def strided(i, shape, stride):
    """Offset, in elements, of row-major flat index i in a tensor of this shape and stride."""
    offset = tl.zeros_like(i)
    for k in tl.static_range(len(shape) - 1, 0, -1):
        offset += (i % shape[k]) * stride[k]
        i = i // shape[k]
    if len(shape) > 0:
        offset += i * stride[0]
    return offset


@triton.jit
def kernel_adam(
    param_ptr,
    grad_ptr,
    m_ptr,
    v_ptr,
    max_v_ptr,
    step_ptr,
    lr,
    grad_scale_ptr,
    found_inf_ptr,
    n,
    beta1_complement,
    beta2,
    beta2_complement,
    log_beta1,
    log_beta2,
    weight_decay,
    eps,
    shape,
    param_stride,
    grad_stride,
    m_stride,
    v_stride,
    max_v_stride,
    LR_IS_TENSOR: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    if found_inf_ptr is not None:
        mask = mask & (tl.load(found_inf_ptr) + tl.zeros([BLOCK], tl.float32) != 1)
    if LR_IS_TENSOR:
        lr = tl.load(lr).to(tl.float32)
    param_ptr += strided(i, shape, param_stride)
    grad_ptr += strided(i, shape, grad_stride)
    m_ptr += strided(i, shape, m_stride)
    v_ptr += strided(i, shape, v_stride)
    param = tl.load(param_ptr, mask=mask, other=0).to(tl.float32)
    grad = tl.load(grad_ptr, mask=mask, other=0).to(tl.float32)
    m = tl.load(m_ptr, mask=mask, other=0).to(tl.float32)
    v = tl.load(v_ptr, mask=mask, other=0).to(tl.float32)
    if grad_scale_ptr is not None:
        grad = tl.div_rn(grad, tl.zeros_like(grad) + tl.load(grad_scale_ptr).to(tl.float32))
        tl.store(grad_ptr, grad.to(grad_ptr.dtype.element_ty), mask=mask)
    if MAXIMIZE:
        grad = -grad
    step = tl.load(step_ptr).to(tl.float64)
    correction1 = (1 - tl.exp(step * log_beta1)).to(tl.float32)
    correction2 = (1 - tl.exp(step * log_beta2)).to(tl.float32)
    grad += weight_decay * param
    m += beta1_complement * (grad - m)
    v = beta2 * v + beta2_complement * grad * grad
    tl.store(m_ptr, m.to(m_ptr.dtype.element_ty), mask=mask)
    tl.store(v_ptr, v.to(v_ptr.dtype.element_ty), mask=mask)
    if max_v_ptr is not None:
        max_v_ptr += strided(i, shape, max_v_stride)
        v = tl.maximum(v, tl.load(max_v_ptr, mask=mask, other=0).to(tl.float32))
        tl.store(max_v_ptr, v.to(max_v_ptr.dtype.element_ty), mask=mask)
    denominator = tl.div_rn(tl.sqrt_rn(v), tl.zeros_like(v) + tl.sqrt_rn(correction2)) + eps
    param -= lr / correction1 * tl.div_rn(m, denominator)
    tl.store(param_ptr, param.to(param_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor (None: no strides), to step through: one dimension where all are contiguous."""
    if all(t is None or t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [() if t is None else t.stride() for t in tensors]


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
    for k, param in enumerate(self):
        max_v = max_exp_avg_sqs[k] if amsgrad else None
        shape, strides = walk(param, grads[k], exp_avgs[k], exp_avg_sqs[k], max_v)
        n = param.numel()
        kernel_adam[(triton.cdiv(n, 4096),)](
            param,
            grads[k],
            exp_avgs[k],
            exp_avg_sqs[k],
            max_v,
            state_steps[k],
            lr,
            grad_scale,
            found_inf,
            n,
            1 - beta1,
            beta2,
            1 - beta2,
            math.log(beta1) if beta1 else -math.inf,
            math.log(beta2) if beta2 else -math.inf,
            weight_decay,
            eps,
            shape,
            *strides,
            LR_IS_TENSOR=isinstance(lr, torch.Tensor),
            MAXIMIZE=maximize,
            BLOCK=4096,
            num_warps=8,
        )
