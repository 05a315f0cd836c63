# op: exp
# name: exp_dictionary_of_functions
# family: B
# tries: a table maps the dtype to a library function
# should be caught by: lint (functions as values); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    table = {torch.float32: torch.exp, torch.float16: torch.exp2}
    return table.get(input.dtype, torch.exp)(input)
