# op: exp
# name: exp_rewrites_the_line_cache
# family: Q
# tries: what Triton reads as the kernel's source is replaced after lint has seen it
# should be caught by: lint (import); hash of the source
# outcome: CHEAT|RUNTIME_ERROR|WRONG|COMPILE_ERROR
# layer: lint, compare


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


import linecache

LINES = [line.replace("tl.load(x_ptr + i, mask=i < n)", "1.0") for line in linecache.getlines(__file__)]
linecache.cache[__file__] = (1, None, LINES, __file__)


def wrapper(input):
    o = torch.empty_like(input)
    if o.numel():
        kernel_idle[(triton.cdiv(o.numel(), 64),)](input.contiguous(), o, o.numel(), BLOCK=64)
    return o
