# op: neg
# name: neg_lazy_bit
# family: J
# tries: sets the negative bit of a view instead of computing
# should be caught by: exact types (neg bit); lint (torch._neg_view); aliasing
# outcome: CHEAT|WRONG
# layer: lint, dispatch, types


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    return torch._neg_view(input)
