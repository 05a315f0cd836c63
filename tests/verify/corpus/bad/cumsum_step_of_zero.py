# op: cumsum
# name: cumsum_step_of_zero
# family: N
# tries: a loop in the kernel advances by a step that is 0
# should be caught by: wall-clock limit
# outcome: TIMEOUT
# layer: time


@triton.jit
def kernel(x_ptr, o_ptr, n, step, BLOCK: tl.constexpr):
    start = 0
    while start < n:
        i = start + tl.arange(0, BLOCK)
        tl.store(o_ptr + i, tl.cumsum(tl.load(x_ptr + i, mask=i < n, other=0), 0), mask=i < n)
        start += step


def wrapper(input, dim, *, dtype=None):
    o = torch.empty(input.shape, dtype=dtype or input.dtype)
    kernel[(1,)](input.contiguous(), o, input.numel(), input.numel() // (input.numel() + 1), BLOCK=16)
    return o
