# op: sum
# name: sum_builtin_over_rows
# family: C
# tries: the builtin sum adds the tensors that iteration gives
# should be caught by: lint (builtin on tensors); dispatch guard (aten::add)
# outcome: CHEAT|WRONG
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, dtype=None):
    flat = input.reshape(-1)
    o = torch.zeros((), dtype=dtype or input.dtype, device=input.device)
    return sum(flat.unbind(), o)
