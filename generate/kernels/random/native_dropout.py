"""aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)

One flat grid over the input. Element i stays, scaled by 1 / (1 - p), where word i % 4 of Philox at counter
(offset, i // 4), as a fraction of 2^32, is less than 1 - p; what is dropped is the input times 0. Computed in fp32, of
float64 in fp64.
"""

import math

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::native_dropout",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


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
def kernel_dropout(
    x_ptr,
    out_ptr,
    mask_ptr,
    n,
    limit: tl.int64,
    scale: tl.float64,
    seed: tl.int64,
    offset: tl.int64,
    shape,
    x_stride,
    out_stride,
    BLOCK: tl.constexpr,
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    i = start + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=inside)
    x = x if x.dtype.is_fp64() else x.to(tl.float32)
    stays = random_words(seed, offset, start, BLOCK).to(tl.int64) < limit
    scale = (tl.zeros([1], tl.float64) + scale).to(x.dtype)
    at = strided(i, shape, out_stride)
    tl.store(out_ptr + at, (x * stays.to(x.dtype) * scale).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(mask_ptr + at, stays.to(mask_ptr.dtype.element_ty), mask=inside)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all lie dense in the same order."""
    if not all(t.is_contiguous() for t in tensors):
        order = sorted(range(tensors[0].dim()), key=tensors[0].stride, reverse=True)
        tensors = [t.permute(order) for t in tensors]
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(input, p, train, *, philox):
    seed, offset = philox
    out = torch.empty_like(input)
    n = out.numel()
    if n == 0:
        return out, torch.empty_like(input)  # ATen's mask of no elements has the input's dtype
    mask = torch.empty_like(input, dtype=torch.bool)
    keep = 1.0 if train is False else 1.0 - p
    shape, (x_stride, out_stride, _) = walk(input, out, mask)
    kernel_dropout[(triton.cdiv(n, 4096),)](
        input,
        out,
        mask,
        n,
        math.ceil(keep * 4294967296.0),
        1.0 / keep if keep > 0 else 0.0,
        seed,
        offset,
        shape,
        x_stride,
        out_stride,
        BLOCK=4096,
        num_warps=8,
    )
    return out, mask
