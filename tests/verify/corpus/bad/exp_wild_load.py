# op: exp
# name: exp_wild_load
# family: P
# tries: loads from far outside: a segmentation fault in the interpreter
# should be caught by: bounds of every access; CRASH of this job alone
# outcome: CRASH|RUNTIME_ERROR|CHEAT|WRONG
# layer: access, run


@triton.jit
def kernel(x_ptr, o_ptr, n, far, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    stray = tl.load(x_ptr + i + far, mask=i < n, other=0)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.exp(x) + stray * 0, mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    if o.numel():
        kernel[(triton.cdiv(o.numel(), 64),)](x, o, o.numel(), 1 << 41, BLOCK=64)
    return o
