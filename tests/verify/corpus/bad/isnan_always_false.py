# op: isnan
# name: isnan_always_false
# family: F
# tries: zeros: no OpInfo sample of float32 holds a NaN
# should be caught by: input variation (special values); no-kernel replay
# outcome: WRONG|CHEAT
# layer: launch, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    return torch.zeros(input.shape, dtype=torch.bool, device=input.device)
