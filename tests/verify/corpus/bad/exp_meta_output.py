# op: exp
# name: exp_meta_output
# family: J
# tries: an output without data
# should be caught by: exact types; lint (device)
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, types


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    return torch.empty(input.shape, dtype=input.dtype, device="meta")
