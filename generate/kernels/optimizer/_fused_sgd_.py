"""aten::_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay,
    float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor?
    grad_scale=None, Tensor? found_inf=None) -> ()
aten::_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float
    weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor?
    grad_scale=None, Tensor? found_inf=None) -> ()

One launch takes up to 32 parameters, as tuples of pointers; a program finds its own by the first program of each. One
that is not contiguous is launched alone, with its strides. The step is in fp32; without momentum the list of buffers is
empty, and in the first step a buffer becomes the gradient. Where found_inf is 1 nothing changes; where grad_scale is
given the unscaled gradient is written back, as ATen does.
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
def pick(values, firsts):
    """The value of the tensor that this program works on: the last whose first program is not after this one."""
    place = 2 * tl.program_id(0) + 1
    value = values[0]
    for k in tl.static_range(1, len(values)):
        value = tl.where(place >= firsts[k], values[k], value)
    return value


@triton.jit
def sgd(
    param_ptr,
    grad_ptr,
    buffer_ptr,
    lr,
    grad_scale_ptr,
    weight_decay,
    momentum,
    dampening_complement,
    mask,
    NESTEROV: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    FIRST: tl.constexpr,
):
    param = tl.load(param_ptr, mask=mask).to(tl.float32)
    grad = tl.load(grad_ptr, mask=mask).to(tl.float32)
    if grad_scale_ptr is not None:
        grad = tl.div_rn(grad, tl.zeros_like(grad) + tl.load(grad_scale_ptr).to(tl.float32))
        tl.store(grad_ptr, grad.to(grad_ptr.dtype.element_ty), mask=mask)
    if MAXIMIZE:
        grad = -grad
    grad += weight_decay * param
    if buffer_ptr is not None:
        buffer = grad
        if not FIRST:
            buffer = momentum * tl.load(buffer_ptr, mask=mask).to(tl.float32) + dampening_complement * grad
        tl.store(buffer_ptr, buffer.to(buffer_ptr.dtype.element_ty), mask=mask)
        grad = grad + momentum * buffer if NESTEROV else buffer
    tl.store(param_ptr, (param - lr * grad).to(param_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_sgd(
    weights,
    grads,
    buffers,
    lr,
    grad_scale_ptr,
    found_inf_ptr,
    numbers,
    firsts,
    sizes,
    shape,
    strides,
    LR_IS_TENSOR: tl.constexpr,
    NESTEROV: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    start = (tl.program_id(0) - pick(firsts, firsts) // 2).to(tl.int64) * BLOCK
    n = pick(sizes, firsts) // 2
    if found_inf_ptr is not None:
        n = tl.where(tl.load(found_inf_ptr) == 1, 0, n)
    if LR_IS_TENSOR:
        lr = tl.load(lr).to(tl.float32)
    i = start + tl.arange(0, BLOCK)
    param_ptr = pick(weights, firsts) + strided(i, shape, strides[0])
    grad_ptr = pick(grads, firsts) + strided(i, shape, strides[1])
    buffer_ptr = None
    if buffers is not None:
        buffer_ptr = pick(buffers, firsts) + strided(i, shape, strides[2])
    if start + BLOCK <= n:
        sgd(param_ptr, grad_ptr, buffer_ptr, lr, grad_scale_ptr, *numbers, None, NESTEROV, MAXIMIZE, FIRST)
    else:
        sgd(param_ptr, grad_ptr, buffer_ptr, lr, grad_scale_ptr, *numbers, i < n, NESTEROV, MAXIMIZE, FIRST)


def alike(lists, sizes):
    """Lists of indices: of tensors that are contiguous, of one size and of the same types; and of the others."""
    own = lists[lists[0] is lists[-1] and len(lists) > 1 :]  # not twice what is written in place
    dense = all([t.is_contiguous() for ts in own for t in ts]) and all([len({t.dtype for t in ts}) == 1 for ts in own])
    if dense and all([[t.numel() for t in ts] == sizes for ts in own[:-1]]):
        return [[k for k, n in enumerate(sizes) if n]], []
    kinds, others = {}, []
    for k, tensors in enumerate(zip(*lists, strict=True)):
        if sizes[k] and all([t.is_contiguous() and t.numel() == sizes[k] for t in tensors]):
            types = tuple([t.dtype for t in tensors])
            kinds[types] = [*kinds.get(types, []), k]
        elif sizes[k]:
            others.append(k)
    return [ks for _, ks in kinds.items()], others


def launches(*lists):
    """Of each launch: indices of its tensors, number of programs, first program and size of each, shape and strides.

    Up to 32 tensors go together, the last repeated so that there are 8, 16 or 32 of them; one that is not contiguous,
    or is broadcast to its shape in the last list, goes alone. First programs and sizes v are given as 2 * v + 1, since
    Triton compiles anew for integers that are 1 or multiples of 16.
    """
    sizes = [t.numel() for t in lists[-1]]
    together, others = alike(lists, sizes)
    found = []
    for ks in [every[at : at + 32] for every in together for at in range(0, len(every), 32)]:
        firsts, programs = [], 0
        for k in ks:
            firsts.append(2 * programs + 1)
            programs += (sizes[k] + 4095) // 4096
        more = (8 if len(ks) <= 8 else 16 if len(ks) <= 16 else 32) - len(ks)
        padded = ks + ks[-1:] * more
        ends = (*firsts, *[2 * programs + 1] * more)
        found.append((padded, programs, ends, tuple([2 * sizes[k] + 1 for k in padded]), (1,), ((1,),) * len(lists)))
    for k in others:
        shape = tuple(lists[-1][k].shape)
        strides = tuple([ts[k].expand(shape).stride() for ts in lists])
        found.append(([k], (sizes[k] + 4095) // 4096, (1,), (2 * sizes[k] + 1,), shape, strides))
    return found


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
    lists = (self, grads, buffers) if buffers else (self, grads)
    for ks, programs, firsts, sizes, shape, strides in launches(*lists):
        kernel_sgd[(programs,)](
            tuple([self[k] for k in ks]),
            tuple([grads[k] for k in ks]),
            tuple([buffers[k] for k in ks]) if buffers else None,
            lr,
            grad_scale,
            found_inf,
            (weight_decay, momentum, 1 - dampening),
            firsts,
            sizes,
            shape,
            strides,
            LR_IS_TENSOR=isinstance(lr, torch.Tensor),
            NESTEROV=nesterov,
            MAXIMIZE=maximize,
            FIRST=is_first_step,
            BLOCK=4096,
            num_warps=8,
        )
