# op: exp
# name: exp_endless_wrapper
# family: N
# tries: a loop in the wrapper whose variable never changes
# should be caught by: wall-clock limit
# outcome: TIMEOUT
# layer: time


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.exp(x), mask=i < n)


def wrapper(input):
    size = input.dim() + 1
    while size > 0:
        size += 0
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
