# op: nan_to_num
# name: nan_to_num_ignores_infinities
# family: F
# tries: posinf and neginf are never looked at
# should be caught by: input variation (special values)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, nan, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.where(x != x, nan, x), mask=i < n)


def wrapper(input, nan=None, posinf=None, neginf=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 64),)](x, o, n, float(nan or 0.0), BLOCK=64)
    return o
