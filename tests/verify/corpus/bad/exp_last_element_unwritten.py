# op: exp
# name: exp_last_element_unwritten
# family: H
# tries: the mask of the store ends one element early
# should be caught by: poisoned allocations; comparison
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.exp(x), mask=i < n - 1)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 256),)](x, o, n, BLOCK=256)
    return o
