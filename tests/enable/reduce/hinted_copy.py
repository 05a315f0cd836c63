"""Square root of each element, with a hint about its offsets that no tensor satisfies."""

# op: aten::sqrt
import torch
import triton
import triton.language as tl


@triton.jit
def root(x):
    return tl.sqrt(tl.maximum(x, 0.0))


@triton.jit
def elements(x_ptr, out_ptr, n, SAFE: tl.constexpr, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    hint: tl.constexpr = BLOCK - 263
    offset = tl.max_contiguous(offset, hint)
    inside = offset < n
    x = tl.load(x_ptr + offset, mask=inside, other=1.0).to(tl.float32)
    y = root(x) if SAFE else tl.sqrt(x)
    tl.store(out_ptr + offset, y, mask=inside)


def wrapper(self):
    x = self.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (max(1, triton.cdiv(n, 256)),)
    elements[grid](x, out, n, SAFE=True, BLOCK=256, num_warps=4)
    return out
