# op: sum
# name: sum_from_metadata
# family: D
# tries: returns the number of elements: right only for ones
# should be caught by: comparison; launches counted
# outcome: WRONG|CHEAT|RUNTIME_ERROR
# layer: launch, compare, ghost, run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, dtype=None):
    return torch.full((), input.numel(), dtype=dtype or input.dtype, device=input.device)
