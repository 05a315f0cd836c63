# op: sin
# name: sin_loop_alias
# family: B
# tries: a for loop over a tuple gives the module a new name
# should be caught by: lint (torch used as a value); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    for library, name in ((torch, "sin"),):
        o = library.special.sinc(input * 0) * library.sin(input)
    return o
