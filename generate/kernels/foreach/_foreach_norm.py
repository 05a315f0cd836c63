"""aten::_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]

Two launches for up to 64 tensors, which come as tuples of pointers; a program finds its own by the first program of
each. The first folds every 16,384 elements into one number, the second these numbers of each tensor, in a fixed order,
so that results are reproducible. ord 0 counts nonzeros, +-inf takes the largest or smallest magnitude (NaN wins), 1 and
2 sum in fp32, any other ord sums |x|^p in fp64. A tensor that is not contiguous is launched alone, with its strides.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::_foreach_norm.Scalar",)
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
def power(x, p):
    """x ** p for x >= 0."""
    return tl.exp2(p * tl.log2(x))


@triton.jit
def fold(x, ORD: tl.constexpr):
    """One number for a block of them."""
    if ORD == "inf" or ORD == "-inf":
        nan = tl.sum((x != x).to(tl.int32), 0) > 0
        folded = tl.where(nan, float("nan"), tl.max(x, 0) if ORD == "inf" else tl.min(x, 0))
    else:
        folded = tl.sum(x, 0)
    return folded


@triton.jit
def at(values):
    """The value at the place program_id(0)."""
    value = values[0]
    for k in tl.static_range(1, len(values)):
        value = tl.where(tl.program_id(0) >= k, values[k], value)
    return value


@triton.jit
def prepare(x, within, p, ORD: tl.constexpr):
    """What is folded of x: fp32, or fp64 for a power."""
    x = tl.abs(x.to(tl.float32))
    if ORD == "-inf":
        x = tl.where(within, x, float("inf"))
    elif ORD == "0":
        x = tl.where(x != 0, 1.0, 0.0)
    elif ORD == "2":
        x *= x
    elif ORD == "p":
        x = tl.where(within, power(x.to(tl.float64), p), 0)
    return x


@triton.jit
def join(acc, x, ORD: tl.constexpr):
    """acc with x, element by element; NaN wins."""
    if ORD == "inf":
        acc = tl.where((x > acc) | (x != x), x, acc)
    elif ORD == "-inf":
        acc = tl.where((x < acc) | (x != x), x, acc)
    else:
        acc += x
    return acc


@triton.jit
def kernel_partial(
    xs, partial_ptr, p, firsts, sizes, shape, strides, ORD: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr
):
    first = (tl.program_id(0) - pick(firsts, firsts) // 2).to(tl.int64) * SPAN
    n = pick(sizes, firsts) // 2
    x_ptr = pick(xs, firsts)
    acc = tl.full([BLOCK], float("inf") if ORD == "-inf" else 0.0, partial_ptr.dtype.element_ty)
    for start in range(first, tl.minimum(first + SPAN, n), BLOCK):
        i = start + tl.arange(0, BLOCK)
        at_ptr = x_ptr + strided(i, shape, strides[0])
        x = tl.load(at_ptr) if start + BLOCK <= n else tl.load(at_ptr, mask=i < n, other=0)
        acc = join(acc, prepare(x, i < n, p, ORD), ORD)
    tl.store(partial_ptr + tl.program_id(0), fold(acc, ORD))


@triton.jit
def kernel_norm(partial_ptr, outs, p, firsts, sizes, ORD: tl.constexpr, SPAN: tl.constexpr, CHUNK: tl.constexpr):
    out_ptr = at(outs)
    partial_ptr += at(firsts) // 2
    n = tl.cdiv(at(sizes) // 2, SPAN)
    nothing = float("inf") if ORD == "-inf" else 0.0
    acc = tl.full([CHUNK], nothing, partial_ptr.dtype.element_ty)
    for start in range(0, n, CHUNK):
        i = start + tl.arange(0, CHUNK)
        x = tl.load(partial_ptr + i, mask=i < n, other=nothing)
        acc = join(acc, x, ORD)
    norm = fold(acc, ORD)
    if ORD == "2":
        norm = tl.sqrt_rn(norm)
    elif ORD == "p":
        norm = power(norm, 1 / p)
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    norm = norm.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else norm.to(dtype)
    tl.store(out_ptr, norm)


def alike(lists, sizes):
    """Lists of indices: of tensors that are contiguous, of one size and of the same types; and of the others."""
    own = lists[lists[0] is lists[-1] and len(lists) > 1 :]  # not twice what is written in place
    dense = all([t.is_contiguous() for ts in own for t in ts]) and all([len({t.dtype for t in ts}) == 1 for ts in own])
    if dense and all([[t.numel() for t in ts] == sizes for ts in own[:-1]]):
        return [list(range(len(sizes)))], []
    kinds, others = {}, []
    for k, tensors in enumerate(zip(*lists, strict=True)):
        if all([t.is_contiguous() and t.numel() == sizes[k] for t in tensors]):
            types = tuple([t.dtype for t in tensors])
            kinds[types] = [*kinds.get(types, []), k]
        else:
            others.append(k)
    return [ks for _, ks in kinds.items()], others


def launches(*lists):
    """Of each launch: indices of its tensors, number of programs, first program and size of each, shape and strides.

    Up to 64 tensors go together, the last repeated so that there are 8, 16, 32 or 64 of them; one that is not
    contiguous goes alone. First programs and sizes v are given as 2 * v + 1, since Triton compiles anew for integers
    that are 1 or multiples of 16.
    """
    sizes = [t.numel() for t in lists[-1]]
    together, others = alike(lists, sizes)
    found = []
    for ks in [every[k : k + 64] for every in together for k in range(0, len(every), 64)]:
        firsts, programs = [], 0
        for k in ks:
            firsts.append(2 * programs + 1)
            programs += (sizes[k] + 16383) // 16384
        more = max(triton.next_power_of_2(len(ks)), 8) - len(ks)
        padded = ks + ks[-1:] * more
        ends = (*firsts, *[2 * programs + 1] * more)
        found.append((padded, programs, ends, tuple([2 * sizes[k] + 1 for k in padded]), (1,), ((1,),) * len(lists)))
    for k in others:
        shape = tuple(lists[-1][k].shape)
        strides = tuple([ts[k].expand(shape).stride() for ts in lists])
        found.append(([k], (sizes[k] + 16383) // 16384, (1,), (2 * sizes[k] + 1,), shape, strides))
    return found


def wrapper(self, ord=2, dtype=None):
    known = {0: "0", 1: "1", 2: "2", math.inf: "inf", -math.inf: "-inf"}
    kind = known.get(ord, "p")
    out = [x.new_empty(()) if dtype is None else torch.empty((), dtype=dtype, device=x.device) for x in self]
    for ks, programs, firsts, sizes, shape, strides in launches(self):
        xs, outs = tuple([self[k] for k in ks]), tuple([out[k] for k in ks])
        partial = torch.empty(programs, dtype=torch.float64 if kind == "p" else torch.float32, device=xs[0].device)
        kernel_partial[(programs,)](
            xs, partial, float(ord), firsts, sizes, shape, strides, ORD=kind, BLOCK=4096, SPAN=16384, num_warps=8
        )
        kernel_norm[(len(set(ks)),)](
            partial, outs, float(ord), firsts, sizes, ORD=kind, SPAN=16384, CHUNK=1024, num_warps=4
        )
    return out
