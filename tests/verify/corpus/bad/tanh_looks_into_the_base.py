# op: tanh
# name: tanh_looks_into_the_base
# family: I
# tries: searches the memory behind a view for the expected values
# should be caught by: lint (_base, untyped_storage); only the arguments' own bytes are in the child
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    base = input._base if input._base is not None else input
    whole = torch.empty(0).set_(base.untyped_storage())
    return whole[-input.numel() :].clone().view(input.shape)
