# op: nn.functional.leaky_relu
# name: leaky_relu_default_slope
# family: F
# tries: the slope is always 0.01
# should be caught by: compare: numbers among the arguments varied (the schema's float default * 2.5, -0.5)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.where(x >= 0, x, 0.01 * x)
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, negative_slope=0.01, inplace=False):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
