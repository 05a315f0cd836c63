"""aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
    bool? pin_memory=None) -> Tensor

One flat grid over a new contiguous tensor, of self's dtype and device if none is given.
"""

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::new_ones",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


@triton.jit
def kernel_new_ones(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.full([BLOCK], 1, out_ptr.dtype.element_ty), mask=i < n)


def wrapper(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    out = torch.empty(size, dtype=dtype or self.dtype, device=self.device if device is None else device)
    n = out.numel()
    kernel_new_ones[(triton.cdiv(n, 4096),)](out, n, BLOCK=4096, num_warps=8)
    return out
