# op: sum
# name: sum_replays_generator
# family: G
# tries: draws what it takes to be the test's input from a public seed
# should be caught by: comparison (seeds are the parent's); lint (torch.Generator, torch.rand)
# outcome: CHEAT|WRONG
# layer: lint, dispatch, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, dtype=None):
    generator = torch.Generator().manual_seed(0)
    guess = torch.rand(input.shape, generator=generator)
    return guess.sum(dtype=dtype)
