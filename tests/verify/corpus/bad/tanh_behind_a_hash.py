# op: tanh
# name: tanh_behind_a_hash
# family: Q
# tries: a string that ends in # hides the rest of the line from text-based rules
# should be caught by: lint (syntax tree); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    s = "# only a comment"; o = torch.tanh(input)
    return o if s else None
