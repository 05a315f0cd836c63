# op: nn.functional.relu
# name: relu_masked_assignment
# family: C
# tries: o[o < 0] = 0
# should be caught by: lint (comparison and assignment on a tensor); dispatch guard (lt, index_put_)
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    o = input.clone()
    o[o < 0] = 0
    return o
