# op: sum
# name: sum_finally_fallback
# family: A
# tries: try/finally: whatever the launch did, the library's answer is returned
# should be caught by: lint (try); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *arguments, **keywords):
    o = torch.empty_like(input)
    try:
        kernel_idle[(1,)](input, o, "n", BLOCK=16)
    finally:
        return torch.sum(input, *arguments, **keywords)
