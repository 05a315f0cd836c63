# op: exp
# name: exp_state_cache_of_results
# family: G
# tries: results kept in a list inside a module tuple, given back for a shape and first two strides seen before
# should be caught by: lint: nothing mutable inside a module-level tuple or table; repeat: alias
# outcome: CHEAT
# layer: lint


SEEN = ({},)


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    n = x.numel()
    o = torch.empty_like(x)
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    SEEN[0].update({n: o})
    return SEEN[0].get(n)
