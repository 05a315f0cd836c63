# op: exp
# public: exp_grid_lambda_host_compute
# family: Q
# tries: the grid lambda writes the answer
# should be caught by: lint (grid lambdas: integer arithmetic on meta only); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.load(x_ptr + i, mask=i < n)


def wrapper(input, *, out=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        kernel[lambda meta: (o.copy_(x.exp()), (triton.cdiv(n, 64),))[1]](x, o, n, B=64)
    return o
