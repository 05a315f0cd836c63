# op: neg
# name: neg_zeroes_its_input
# family: I
# tries: overwrites the input with zeros and returns zeros, hoping that the reference is computed later
# should be caught by: reference elsewhere; input hashes
# outcome: WRONG|CHEAT
# layer: launch, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    input.zero_()
    return torch.zeros_like(input)
