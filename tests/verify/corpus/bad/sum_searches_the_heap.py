# op: sum
# name: sum_searches_the_heap
# family: K
# tries: gc.get_objects() for a tensor that could be the expected answer
# should be caught by: the reference is in another process; lint (import)
# outcome: CHEAT|WRONG
# layer: lint, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, dtype=None):
    import gc

    for found in gc.get_objects():
        if isinstance(found, torch.Tensor) and found.dim() == 0 and found is not input:
            return found.clone()
    return torch.zeros((), dtype=dtype or input.dtype)
