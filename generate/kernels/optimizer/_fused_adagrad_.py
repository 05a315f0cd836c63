"""aten::_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *,
    float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor?
    found_inf=None) -> ()
aten::_fused_adagrad_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] state_steps,
    *, Tensor lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor?
    found_inf=None) -> ()

One launch a parameter (Duchi et al., Adaptive subgradient methods, 2011), in fp32. Where found_inf is 1 nothing
changes; where grad_scale is given the unscaled gradient is written back, as ATen does.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_fused_adagrad_", "aten::_fused_adagrad_.tensor_lr")
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
def kernel_adagrad(
    param_ptr,
    grad_ptr,
    sum_ptr,
    step_ptr,
    lr,
    grad_scale_ptr,
    found_inf_ptr,
    n,
    lr_decay,
    weight_decay,
    eps,
    shape,
    param_stride,
    grad_stride,
    sum_stride,
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
    sum_ptr += strided(i, shape, sum_stride)
    param = tl.load(param_ptr, mask=mask, other=0).to(tl.float32)
    grad = tl.load(grad_ptr, mask=mask, other=0).to(tl.float32)
    if grad_scale_ptr is not None:
        grad = tl.div_rn(grad, tl.zeros_like(grad) + tl.load(grad_scale_ptr).to(tl.float32))
        tl.store(grad_ptr, grad.to(grad_ptr.dtype.element_ty), mask=mask)
    if MAXIMIZE:
        grad = -grad
    grad += weight_decay * param
    rate = lr / (1 + (tl.load(step_ptr).to(tl.float32) - 1) * lr_decay)
    total = tl.load(sum_ptr, mask=mask, other=0).to(tl.float32) + grad * grad
    tl.store(sum_ptr, total.to(sum_ptr.dtype.element_ty), mask=mask)
    param -= rate * tl.div_rn(grad, tl.sqrt_rn(total) + eps)
    tl.store(param_ptr, param.to(param_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


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
    for k, param in enumerate(self):
        shape, strides = walk(param, grads[k], state_sums[k])
        n = param.numel()
        kernel_adagrad[(triton.cdiv(n, 4096),)](
            param,
            grads[k],
            state_sums[k],
            state_steps[k],
            lr,
            grad_scale,
            found_inf,
            n,
            lr_decay,
            weight_decay,
            eps,
            shape,
            *strides,
            LR_IS_TENSOR=isinstance(lr, torch.Tensor),
            MAXIMIZE=maximize,
            BLOCK=4096,
            num_warps=8,
        )
