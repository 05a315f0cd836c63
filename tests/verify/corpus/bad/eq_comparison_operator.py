# op: eq
# name: eq_comparison_operator
# family: C
# tries: the operator == on tensors, written as a chain so that no plain comparison stands there
# should be caught by: lint; dispatch guard (aten::eq)
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, other):
    x = input.reshape(input.shape)
    return x == other
