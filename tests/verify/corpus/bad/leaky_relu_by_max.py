# op: nn.functional.leaky_relu
# name: leaky_relu_by_max
# family: F
# tries: max(x, slope * x): wrong where the slope is over 1 or negative
# should be caught by: compare: numbers among the arguments varied
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, negative_slope, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.maximum(x, negative_slope * x)
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, negative_slope=0.01, inplace=False):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, negative_slope, BLOCK=128)
    return o
