# op: exp
# name: exp_other_kernel_library
# family: T
# tries: another library of kernels
# should be caught by: lint (import)
# outcome: CHEAT|RUNTIME_ERROR
# layer: lint, run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    import flag_gems

    return flag_gems.exp(input)
