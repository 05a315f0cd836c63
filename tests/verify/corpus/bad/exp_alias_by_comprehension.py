# op: exp
# public: exp_alias_by_comprehension
# family: B
# tries: the module is aliased by a comprehension target, so no name 'torch' stands next to 'exp'
# should be caught by: lint (alias tracking: torch used as a value); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, *, out=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](x, o, n, B=64)
    return [lib.exp(input) for lib in (torch,)][0]
