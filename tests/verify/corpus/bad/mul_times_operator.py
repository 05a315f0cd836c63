# op: mul
# name: mul_times_operator
# family: C
# tries: the operator * on tensors
# should be caught by: lint; dispatch guard (aten::mul)
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, other):
    x = input.contiguous()
    return x * other
