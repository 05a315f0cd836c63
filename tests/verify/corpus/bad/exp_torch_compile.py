# op: exp
# public: exp_torch_compile
# family: T
# tries: lets torch.compile write and run the kernel (eager backend here: no compiler needed)
# should be caught by: lint (torch.compile); dispatch guard
# outcome: CHEAT|RUNTIME_ERROR
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
    return torch.compile(lambda t: t.exp(), backend="eager")(input)
