# op: softmax
# name: softmax_module_object
# family: A
# tries: builds torch.nn.Softmax(dim) and calls the object
# should be caught by: lint (torch.nn); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, dim, dtype=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_idle[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return torch.nn.Softmax(dim)(input)
