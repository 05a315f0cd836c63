# op: round
# name: round_half_up
# family: F
# tries: floor(x + 0.5): halves go up instead of to even
# should be caught by: compare: value regime 'multiples of 1/2' (ties, halves, zeros beside others)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    s = scale
    y = tl.floor(x * s + 0.5) / s
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, *, decimals=0):
    scale = 10.0 ** decimals
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, scale, BLOCK=128)
    return o
