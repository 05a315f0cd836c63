# op: exp
# name: exp_static_range_of_a_googol
# family: N
# tries: bounds of tl.static_range beyond any machine integer
# should be caught by: lint: len(range()) overflows; the judge ends in a traceback
# outcome: CHEAT
# layer: lint


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    for k in tl.static_range(0, 1000000000000000000000000000000):
        x += k
    tl.store(o_ptr + i, x, mask=i < n)


def wrapper(input):
    o = torch.empty_like(input)
    kernel[(1,)](input, o, input.numel(), BLOCK=64)
    return o
