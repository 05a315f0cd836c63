# op: where
# name: where_sparse_output
# family: J
# tries: a sparse output, which a comparison may convert or skip
# should be caught by: exact types; lint (to_sparse)
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, types, dispatch


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(condition, input, other):
    return torch.where(condition, input, other).to_sparse()
