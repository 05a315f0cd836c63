"""aten::_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]
aten::_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]
aten::_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]

self + weight * (end - self) in fp32, taken from the nearer end (weight < 0.5 or not) so that weight = 1 gives end
exactly. One launch takes up to 32 tensors, as tuples of pointers; a program finds its own by the first program of each.
A tensor that is not contiguous, or is broadcast, is launched alone, with its strides.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_foreach_lerp.Scalar", "aten::_foreach_lerp.ScalarList", "aten::_foreach_lerp.List")
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
def lerp(x_ptr, y_ptr, z, out_ptr, mask, Z_IS_TENSOR: tl.constexpr):
    x = tl.load(x_ptr, mask=mask).to(tl.float32)
    y = tl.load(y_ptr, mask=mask).to(tl.float32)
    if Z_IS_TENSOR:
        z = tl.load(z, mask=mask).to(tl.float32)
    near_x = tl.zeros_like(x) + z < 0.5
    out = tl.where(near_x, x + z * (y - x), y - (y - x) * (1 - z))
    tl.store(out_ptr, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def kernel_lerp(xs, ys, zs, outs, firsts, sizes, shape, strides, Z_IS_TENSOR: tl.constexpr, BLOCK: tl.constexpr):
    start = (tl.program_id(0) - pick(firsts, firsts) // 2).to(tl.int64) * BLOCK
    n = pick(sizes, firsts) // 2
    i = start + tl.arange(0, BLOCK)
    x_ptr = pick(xs, firsts) + strided(i, shape, strides[0])
    y_ptr = pick(ys, firsts) + strided(i, shape, strides[1])
    z = pick(zs, firsts)
    if Z_IS_TENSOR:
        z += strided(i, shape, strides[2])
    out_ptr = pick(outs, firsts) + strided(i, shape, strides[-1])
    if start + BLOCK <= n:
        lerp(x_ptr, y_ptr, z, out_ptr, None, Z_IS_TENSOR)
    else:
        lerp(x_ptr, y_ptr, z, out_ptr, i < n, Z_IS_TENSOR)


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


def wrapper(self, tensors1, weight, *, out=None):
    zs = list(weight) if isinstance(weight, (list, tuple)) else [weight] * len(self)
    is_tensor = isinstance(zs[0], torch.Tensor)
    operands = (self, tensors1, zs) if is_tensor else (self, tensors1)
    if out is None:
        out = [empty_broadcast(ts, ts[0].dtype) for ts in zip(*operands, strict=True)]
    for ks, programs, firsts, sizes, shape, strides in launches(*operands, out):
        kernel_lerp[(programs,)](
            tuple([self[k] for k in ks]),
            tuple([tensors1[k] for k in ks]),
            tuple([zs[k] for k in ks]),
            tuple([out[k] for k in ks]),
            firsts,
            sizes,
            shape,
            strides,
            Z_IS_TENSOR=is_tensor,
            BLOCK=4096,
            num_warps=8,
        )
    return out
