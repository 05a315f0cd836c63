# op: exp
# public: exp_wild_store_poisons_context
# family: P
# tries: stores far outside: SIGSEGV in the interpreter, sticky illegal-address error on a GPU
# should be caught by: crash recorded for this sample only; fresh process next
# outcome: CRASH|RUNTIME_ERROR|CHEAT|WRONG
# layer: access, run

@triton.jit
def kernel(x_ptr, o_ptr, n, far, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.exp(x), mask=i < n)
    tl.store(o_ptr + far + i, x, mask=i < n)


def wrapper(input, *, out=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](x, o, n, 1 << 42, B=64)
    return o
