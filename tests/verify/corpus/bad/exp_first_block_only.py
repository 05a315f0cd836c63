# op: exp
# public: exp_first_block_only
# family: F
# tries: one program of 1024 lanes, the rest of the output stays zero: every OpInfo sample of exp has at most 20 elements
# should be caught by: input variation (sizes past any constant in the source, e.g. 2*max literal + 1)
# outcome: WRONG
# layer: compare

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    tl.store(o_ptr + i, tl.exp(x).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, *, out=None):
    x = input.contiguous()
    o = torch.zeros_like(x)
    if x.numel() > 0:
        kernel[(1,)](x, o, x.numel(), B=1024)
    return o
