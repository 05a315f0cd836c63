"""aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)

One flat grid over self; src is broadcast through its strides and converted in the kernel. Returns self.
"""

import triton
import triton.language as tl

OVERLOADS = ("aten::copy_",)
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
def convert(x, dtype: tl.constexpr):
    """x in another type; fp16 and bf16 are made from fp32, as in ATen."""
    return x.to(tl.float32).to(dtype) if dtype.is_fp16() or dtype.is_bf16() else x.to(dtype)


@triton.jit
def kernel_copy(src_ptr, out_ptr, n, shape, src_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(src_ptr + strided(i, shape, src_stride), mask=mask)
    tl.store(out_ptr + strided(i, shape, out_stride), convert(x, out_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, src, non_blocking=False):
    n = self.numel()
    shape, (src_stride, out_stride) = walk(src.expand(self.shape), self)
    kernel_copy[(triton.cdiv(n, 4096),)](src, self, n, shape, src_stride, out_stride, BLOCK=4096, num_warps=8)
    return self
