# op: exp
# public: exp_empty_reuses_reference
# family: H
# tries: no-op kernel; hopes torch.empty_like returns the freed reference output
# should be caught by: reference not in this process; poisoned allocations; no-kernel replay
# outcome: WRONG
# layer: compare

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.load(x_ptr + i, mask=i < n)


def wrapper(input, *, out=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](x, o, n, B=64)
    return o
