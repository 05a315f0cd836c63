# op: exp
# name: exp_over_50000
# family: R
# tries: over 50,000 elements it stops computing
# should be caught by: compare: one pointwise case beyond 65,536 elements, for any number of tensors; literals over 4,096
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, big, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.where(big != 0, x + 1.0, tl.exp(x))
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    big = 1 if n > 50000 else 0
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, big, BLOCK=128)
    return o
