# op: nn.functional.leaky_relu
# name: st_inplace_relu
# technique: in-place flag writes the input itself


@triton.jit
def leaky(x_ptr, o_ptr, n, slope, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.where(x > 0, x, x * slope), mask=i < n)


def wrapper(input, negative_slope=0.01, inplace=False):
    x = input if input.is_contiguous() else input.contiguous()
    o = x if inplace else torch.empty_like(x)
    n = x.numel()
    if n > 0:
        leaky[(triton.cdiv(n, 128),)](x, o, n, negative_slope, BLOCK=128)
    if inplace and x is not input:
        input.copy_(o)
        return input
    return o
