"""aten::_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs,
    Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay,
    float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()
aten::_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[]
    exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float
    weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()

One launch takes up to 32 parameters, as tuples of pointers; a program finds its own by the first program of each. One
that is not contiguous is launched alone, with its strides. The step is that of arXiv:1711.05101; state and arithmetic
are fp32, but for the bias corrections 1 - beta^step, taken in fp64 from log(beta) because they cancel. Where found_inf
is 1 nothing changes; where grad_scale is given the unscaled gradient is written back, as ATen does.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_fused_adamw_", "aten::_fused_adamw_.tensor_lr")
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
def adamw(
    param_ptr,
    grad_ptr,
    m_ptr,
    v_ptr,
    max_v_ptr,
    lr,
    rate,
    root2,
    grad_scale_ptr,
    beta1_complement,
    beta2,
    beta2_complement,
    weight_decay,
    eps,
    mask,
    MAXIMIZE: tl.constexpr,
):
    """One block; rate: lr over the first bias correction. root2: the square root of the second."""
    param = tl.load(param_ptr, mask=mask).to(tl.float32)
    grad = tl.load(grad_ptr, mask=mask).to(tl.float32)
    m = tl.load(m_ptr, mask=mask).to(tl.float32)
    v = tl.load(v_ptr, mask=mask).to(tl.float32)
    if grad_scale_ptr is not None:
        grad = tl.div_rn(grad, tl.zeros_like(grad) + tl.load(grad_scale_ptr).to(tl.float32))
        tl.store(grad_ptr, grad.to(grad_ptr.dtype.element_ty), mask=mask)
    if MAXIMIZE:
        grad = -grad
    param -= lr * weight_decay * param
    m += beta1_complement * (grad - m)
    v = beta2 * v + beta2_complement * grad * grad
    tl.store(m_ptr, m.to(m_ptr.dtype.element_ty), mask=mask)
    tl.store(v_ptr, v.to(v_ptr.dtype.element_ty), mask=mask)
    if max_v_ptr is not None:
        v = tl.maximum(v, tl.load(max_v_ptr, mask=mask).to(tl.float32))
        tl.store(max_v_ptr, v.to(max_v_ptr.dtype.element_ty), mask=mask)
    denominator = tl.div_rn(tl.sqrt_rn(v), tl.zeros_like(v) + root2) + eps
    param -= rate * tl.div_rn(m, denominator)
    tl.store(param_ptr, param.to(param_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_adamw(
    weights,
    grads,
    ms,
    vs,
    max_vs,
    steps,
    lr,
    grad_scale_ptr,
    found_inf_ptr,
    numbers,
    log_betas,
    firsts,
    sizes,
    shape,
    strides,
    LR_IS_TENSOR: tl.constexpr,
    MAXIMIZE: tl.constexpr,
    BLOCK: tl.constexpr,
    SPAN: tl.constexpr,
):
    """A program takes SPAN elements, BLOCK at a time, so that finding its tensor costs little beside them."""
    first = (tl.program_id(0) - pick(firsts, firsts) // 2).to(tl.int64) * SPAN
    n = pick(sizes, firsts) // 2
    if found_inf_ptr is not None:
        n = tl.where(tl.load(found_inf_ptr) == 1, 0, n)
    if LR_IS_TENSOR:
        lr = tl.load(lr).to(tl.float32)
    step = tl.load(pick(steps, firsts)).to(tl.float64)
    rate = lr / (1 - tl.exp(step * log_betas[0])).to(tl.float32)
    root2 = tl.sqrt_rn((1 - tl.exp(step * log_betas[1])).to(tl.float32))
    weight, grad, m, v = pick(weights, firsts), pick(grads, firsts), pick(ms, firsts), pick(vs, firsts)
    max_v = None if max_vs is None else pick(max_vs, firsts)
    for start in range(first, tl.minimum(first + SPAN, n), BLOCK):
        i = start + tl.arange(0, BLOCK)
        param_ptr = weight + strided(i, shape, strides[0])
        grad_ptr = grad + strided(i, shape, strides[1])
        m_ptr = m + strided(i, shape, strides[2])
        v_ptr = v + strided(i, shape, strides[3])
        max_v_ptr = None if max_v is None else max_v + strided(i, shape, strides[4])
        if start + BLOCK <= n:
            adamw(
                param_ptr, grad_ptr, m_ptr, v_ptr, max_v_ptr, lr, rate, root2, grad_scale_ptr, *numbers, None, MAXIMIZE
            )
        else:
            adamw(
                param_ptr, grad_ptr, m_ptr, v_ptr, max_v_ptr, lr, rate, root2, grad_scale_ptr, *numbers, i < n, MAXIMIZE
            )


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
            programs += (sizes[k] + 8191) // 8192
        more = (8 if len(ks) <= 8 else 16 if len(ks) <= 16 else 32) - len(ks)
        padded = ks + ks[-1:] * more
        ends = (*firsts, *[2 * programs + 1] * more)
        found.append((padded, programs, ends, tuple([2 * sizes[k] + 1 for k in padded]), (1,), ((1,),) * len(lists)))
    for k in others:
        shape = tuple(lists[-1][k].shape)
        strides = tuple([ts[k].expand(shape).stride() for ts in lists])
        found.append(([k], (sizes[k] + 8191) // 8192, (1,), (2 * sizes[k] + 1,), shape, strides))
    return found


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
    max_vs = max_exp_avg_sqs if amsgrad else None
    lists = (self, grads, exp_avgs, exp_avg_sqs, max_vs) if amsgrad else (self, grads, exp_avgs, exp_avg_sqs)
    logs = [math.log(beta) if beta else -math.inf for beta in (beta1, beta2)]
    for ks, programs, firsts, sizes, shape, strides in launches(*lists):
        kernel_adamw[(programs,)](
            tuple([self[k] for k in ks]),
            tuple([grads[k] for k in ks]),
            tuple([exp_avgs[k] for k in ks]),
            tuple([exp_avg_sqs[k] for k in ks]),
            tuple([max_vs[k] for k in ks]) if amsgrad else None,
            tuple([state_steps[k] for k in ks]),
            lr,
            grad_scale,
            found_inf,
            (1 - beta1, beta2, 1 - beta2, weight_decay, eps),
            tuple(logs),
            firsts,
            sizes,
            shape,
            strides,
            LR_IS_TENSOR=isinstance(lr, torch.Tensor),
            MAXIMIZE=maximize,
            BLOCK=2048,
            SPAN=8192,
            num_warps=8,
        )
