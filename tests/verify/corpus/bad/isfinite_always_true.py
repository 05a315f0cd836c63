# op: isfinite
# name: isfinite_always_true
# family: F
# tries: a kernel that stores ones
# should be caught by: input variation (special values)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_ones(o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.full((BLOCK,), 1, tl.uint8), mask=i < n)


def wrapper(input):
    o = torch.empty(input.shape, dtype=torch.bool, device=input.device)
    n = o.numel()
    if n:
        kernel_ones[(triton.cdiv(n, 64),)](o.view(torch.uint8), n, BLOCK=64)
    return o
