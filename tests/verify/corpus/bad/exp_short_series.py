# op: exp
# name: exp_short_series
# family: S
# tries: eight terms of a series: right to 1e-5 around 0 and nowhere else
# should be caught by: input variation (values beyond 1); relative tolerance
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_series(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    y = tl.zeros_like(x) + 1.0
    term = y
    for k in tl.static_range(1, 8):
        term = term * x / k
        y += term
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_series[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
