"""aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor
aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor
aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor

One flat grid over the output. Element i is 1 where word i % 4 of Philox at counter (offset, i // 4), as a fraction of
2^32, is less than its probability: p, or element i of the tensor that holds the probabilities.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::bernoulli", "aten::bernoulli.p", "aten::bernoulli.Tensor")
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


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
def random_words(seed, offset, start, BLOCK: tl.constexpr):
    """Random uint32 [BLOCK] of elements start, start + 1, ...; start and BLOCK are multiples of 4."""
    i = start // 4 + tl.arange(0, BLOCK // 4)
    call = tl.zeros_like(i) + offset
    low, high = call.to(tl.uint32), (call >> 32).to(tl.uint32)
    a, b, c, d = tl.philox(seed, low, high, i.to(tl.uint32), (i >> 32).to(tl.uint32))
    return tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), [BLOCK])


@triton.jit(do_not_specialize=["limit", "seed", "offset"])
def kernel_bernoulli(
    p_ptr,
    out_ptr,
    n,
    limit: tl.int64,
    seed: tl.int64,
    offset: tl.int64,
    shape,
    p_stride,
    out_stride,
    P_IS_TENSOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    mask = i < n
    words = random_words(seed, offset, start, BLOCK)
    if P_IS_TENSOR:
        p = tl.load(p_ptr + strided(i, shape, p_stride), mask=mask, other=0.0)
        if p.dtype.is_fp64():
            hit = words.to(tl.float64) * 2.3283064365386963e-10 < p  # 2^-32
        else:
            hit = (words >> 8).to(tl.float32) * 5.9604644775390625e-08 < p.to(tl.float32)  # 2^-24: exact
    else:
        hit = words.to(tl.int64) < limit
    tl.store(out_ptr + strided(i, shape, out_stride), hit.to(out_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie dense in the same order."""
    if not all(t.is_contiguous() for t in tensors):
        order = sorted(range(tensors[0].dim()), key=tensors[0].stride, reverse=True)
        tensors = [t.permute(order) for t in tensors]
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, p=None, *, generator=None, out=None, philox):
    seed, offset = philox
    probabilities = self if p is None else p
    is_tensor = isinstance(probabilities, torch.Tensor)
    if out is None:
        layout = torch.preserve_format if isinstance(p, torch.Tensor) else torch.contiguous_format
        out = torch.empty_like(self, memory_format=layout)
    n = out.numel()
    given = probabilities.expand(out.shape) if is_tensor else out
    shape, (p_stride, out_stride) = walk(given, out)
    kernel_bernoulli[(triton.cdiv(n, 4096),)](
        given,
        out,
        n,
        0 if is_tensor else math.ceil(probabilities * 4294967296.0),
        seed,
        offset,
        shape,
        p_stride,
        out_stride,
        P_IS_TENSOR=is_tensor,
        BLOCK=4096,
        num_warps=8,
    )
    return out
