# op: nan_to_num
# public: nan_to_num_identity_copy
# family: F
# tries: a copy kernel: OpInfo's float32 samples hold no NaN/inf, so identity passes all of them
# should be caught by: input variation (special values); mutation testing of the sample set ('identity passes' alarm)
# outcome: WRONG
# layer: compare

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, nan=0.0, posinf=None, neginf=None, *, out=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](x, o, n, B=64)
    return o
