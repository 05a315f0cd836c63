"""aten::_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay,
    float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor?
    grad_scale=None, Tensor? found_inf=None) -> ()
aten::_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float
    weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor?
    grad_scale=None, Tensor? found_inf=None) -> ()

One launch a parameter, in fp32; without momentum the list of buffers is empty, and in the first step a buffer becomes
the gradient. Where found_inf is 1 nothing changes; where grad_scale is given the unscaled gradient is written back, as
ATen does.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_fused_sgd_", "aten::_fused_sgd_.tensor_lr")
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
def kernel_sgd(
    param_ptr,
    grad_ptr,
    buffer_ptr,
    lr,
    grad_scale_ptr,
    found_inf_ptr,
    n,
    weight_decay,
    momentum,
    dampening_complement,
    shape,
    param_stride,
    grad_stride,
    buffer_stride,
    LR_IS_TENSOR: tl.constexpr,
    NESTEROV: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    FIRST: tl.constexpr,
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
    param = tl.load(param_ptr, mask=mask, other=0).to(tl.float32)
    grad = tl.load(grad_ptr, mask=mask, other=0).to(tl.float32)
    if grad_scale_ptr is not None:
        grad = tl.div_rn(grad, tl.zeros_like(grad) + tl.load(grad_scale_ptr).to(tl.float32))
        tl.store(grad_ptr, grad.to(grad_ptr.dtype.element_ty), mask=mask)
    if MAXIMIZE:
        grad = -grad
    grad += weight_decay * param
    if buffer_ptr is not None:
        buffer_ptr += strided(i, shape, buffer_stride)
        buffer = grad
        if not FIRST:
            buffer = momentum * tl.load(buffer_ptr, mask=mask, other=0).to(tl.float32) + dampening_complement * grad
        tl.store(buffer_ptr, buffer.to(buffer_ptr.dtype.element_ty), mask=mask)
        grad = grad + momentum * buffer if NESTEROV else buffer
    tl.store(param_ptr, (param - lr * grad).to(param_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor (None: no strides), to step through: one dimension where all are contiguous."""
    if all(t is None or t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [() if t is None else t.stride() for t in tensors]


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
    for k, param in enumerate(self):
        buffer = momentum_buffer_list[k] if momentum_buffer_list else None
        shape, strides = walk(param, grads[k], buffer)
        n = param.numel()
        kernel_sgd[(triton.cdiv(n, 4096),)](
            param,
            grads[k],
            buffer,
            lr,
            grad_scale,
            found_inf,
            n,
            weight_decay,
            momentum,
            1 - dampening,
            shape,
            *strides,
            LR_IS_TENSOR=isinstance(lr, torch.Tensor),
            NESTEROV=nesterov,
            MAXIMIZE=maximize,
            FIRST=is_first_step,
            BLOCK=4096,
            num_warps=8,
        )
