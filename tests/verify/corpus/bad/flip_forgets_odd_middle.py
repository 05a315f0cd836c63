# op: flip
# name: flip_forgets_odd_middle
# family: H
# tries: swaps pairs from both ends; the middle of an odd length is never written
# should be caught by: poisoned allocations; odd sizes
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_swap(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(1) * n
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n // 2
    tl.store(o_ptr + row + i, tl.load(x_ptr + row + n - 1 - i, mask=inside), mask=inside)
    tl.store(o_ptr + row + n - 1 - i, tl.load(x_ptr + row + i, mask=inside), mask=inside)


def wrapper(input, dims):
    o = input.contiguous()
    for dim in dims if input.numel() and input.dim() else []:
        x = o.movedim(dim, -1).contiguous()
        n = x.shape[-1]
        swapped = torch.empty_like(x)
        kernel_swap[(triton.cdiv(n, 32), x.numel() // n)](x, swapped, n, BLOCK=32)
        o = swapped.movedim(-1, dim)
    return o.clone(memory_format=torch.contiguous_format)
