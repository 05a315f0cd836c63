"""aten::gelu(Tensor self, *, str approximate="none") -> Tensor

x * Phi(x) over one flat grid in fp32. 'tanh' (arXiv:1606.08415) uses 0.5 * (1 + tanh(u)) = sigmoid(2u) with u =
sqrt(2/pi) (x + 0.044715 x^3).
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::gelu",)
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
def kernel_gelu(x_ptr, out_ptr, n, shape, x_stride, out_stride, TANH: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask).to(tl.float32)
    if TANH:
        u = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        out = x / (1 + tl.exp(-2 * u))
    else:
        out = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + strided(i, shape, out_stride), out.to(out_ptr.dtype.element_ty), mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, *, approximate="none", out=None):
    if out is None:
        out = torch.empty_like(self)
    n = out.numel()
    shape, (x_stride, out_stride) = walk(self, out)
    kernel_gelu[(triton.cdiv(n, 4096),)](
        self, out, n, shape, x_stride, out_stride, TANH=approximate == "tanh", BLOCK=4096, num_warps=8
    )
    return out
