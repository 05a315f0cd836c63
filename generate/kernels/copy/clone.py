"""aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor

One flat grid over the output, which is allocated in the memory format asked for; of a sparse tensor, its
indices and values.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::clone",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")
LAYOUTS = ("sparse_coo", "strided")


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
def kernel_clone(x_ptr, out_ptr, n, shape, x_stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + strided(i, shape, x_stride), mask=mask)
    tl.store(out_ptr + strided(i, shape, out_stride), x, mask=mask)


def walk(*tensors):
    """Shape, and strides of each tensor, to step through: one dimension where all are contiguous."""
    if all(t.is_contiguous() for t in tensors):
        return (tensors[0].numel(),), [(1,)] * len(tensors)
    return tuple(tensors[0].shape), [t.stride() for t in tensors]


def wrapper(self, *, memory_format=None):
    if self.is_sparse:
        indices, values = wrapper(self._indices()), wrapper(self._values())
        return torch.sparse_coo_tensor(
            indices, values, self.shape, is_coalesced=self.is_coalesced(), check_invariants=False
        )
    out = torch.empty_like(self, memory_format=memory_format or torch.preserve_format)
    n = out.numel()
    shape, (x_stride, out_stride) = walk(self, out)
    kernel_clone[(triton.cdiv(n, 4096),)](self, out, n, shape, x_stride, out_stride, BLOCK=4096, num_warps=8)
    return out
