"""aten::_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]
aten::_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]
aten::_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]
aten::_foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]

True division in fp32; two integers give the default floating-point type. One launch takes up to 32 tensors, as tuples
of pointers; a program finds its own by the first program of each. A tensor that is not contiguous, or is broadcast, is
launched alone, with its strides.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = (
    "aten::_foreach_div.List",
    "aten::_foreach_div.Scalar",
    "aten::_foreach_div.ScalarList",
    "aten::_foreach_div.Tensor",
)
DTYPES = ("bfloat16", "bool", "float16", "float32", "int16", "int32", "int64", "int8", "uint8")


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
def div(x_ptr, y, out_ptr, mask, Y: tl.constexpr):
    x = tl.load(x_ptr, mask=mask).to(tl.float32)
    if Y == "tensors":
        y = tl.load(y, mask=mask).to(tl.float32)
    elif Y == "tensor":
        y = tl.load(y).to(tl.float32)
    out = tl.div_rn(x, tl.cast(y, tl.float32))
    tl.store(out_ptr, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_div(xs, ys, outs, firsts, sizes, shape, strides, Y: tl.constexpr, BLOCK: tl.constexpr):
    start = (tl.program_id(0) - pick(firsts, firsts) // 2).to(tl.int64) * BLOCK
    n = pick(sizes, firsts) // 2
    i = start + tl.arange(0, BLOCK)
    x_ptr = pick(xs, firsts) + strided(i, shape, strides[0])
    out_ptr = pick(outs, firsts) + strided(i, shape, strides[-1])
    y = pick(ys, firsts)
    if Y == "tensors":
        y += strided(i, shape, strides[1])
    if start + BLOCK <= n:
        div(x_ptr, y, out_ptr, None, Y)
    else:
        div(x_ptr, y, out_ptr, i < n, Y)


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


def empty_broadcast(tensors, dtype):
    """New tensor of the broadcast shape, its dimensions in memory ordered as the operands' (TensorIterator's rule)."""
    if all([t.is_contiguous() for t in tensors]) and all([t.shape == tensors[0].shape for t in tensors[1:]]):
        return torch.empty_like(tensors[0], dtype=dtype)
    tensors = torch.broadcast_tensors(*tensors)
    shape = tensors[0].shape
    order = list(range(len(shape)))[::-1]  # fastest dimension first
    for i in range(1, len(order)):
        k = i
        for j in range(i - 1, -1, -1):
            sign = stride_order(tensors, order[j], order[k])
            if sign < 0:
                break
            if sign > 0:
                order[j], order[k], k = order[k], order[j], j
    out = torch.empty([shape[d] for d in order[::-1]], dtype=dtype, device=tensors[0].device)
    return out.permute([order[::-1].index(d) for d in range(len(shape))])


def stride_order(tensors, a, b):
    """Positive where dimension a has to lie outside b, negative where inside, 0 where no operand tells."""
    for t in tensors:
        if t.stride(a) == 0 or t.stride(b) == 0:
            continue
        if t.stride(a) != t.stride(b):
            return t.stride(a) - t.stride(b)
        if t.shape[a] > t.shape[b]:
            return 1
    return 0


def quotient_type(x, y):
    dtype = torch.result_type(x, y)
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def wrapper(self, other, *, out=None):
    ys = list(other) if isinstance(other, (list, tuple)) else [other] * len(self)
    kind = "tensor" if isinstance(other, torch.Tensor) else "tensors" if isinstance(ys[0], torch.Tensor) else "numbers"
    if out is None and kind == "tensors":
        out = [empty_broadcast((x, y), quotient_type(x, y)) for x, y in zip(self, ys, strict=True)]
    elif out is None:
        out = [empty_broadcast((x,), quotient_type(x, y)) for x, y in zip(self, ys, strict=True)]
    lists = (self, ys, out) if kind == "tensors" else (self, out)
    for ks, programs, firsts, sizes, shape, strides in launches(*lists):
        kernel_div[(programs,)](
            tuple([self[k] for k in ks]),
            tuple([ys[k] for k in ks]),
            tuple([out[k] for k in ks]),
            firsts,
            sizes,
            shape,
            strides,
            Y=kind,
            BLOCK=4096,
            num_warps=8,
        )
    return out
