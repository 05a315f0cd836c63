# op: mul
# name: mul_endless_recursion
# family: N
# tries: two helpers call each other without an end
# should be caught by: an error is an outcome
# outcome: RUNTIME_ERROR|CRASH
# layer: run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def even(x, y, k):
    return odd(x, y, k + 1)


def odd(x, y, k):
    return even(x, y, k + 1)


def wrapper(input, other):
    return even(input, other, 0)
