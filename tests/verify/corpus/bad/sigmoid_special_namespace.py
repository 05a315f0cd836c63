# op: sigmoid
# name: sigmoid_special_namespace
# family: A
# tries: torch.special.expit is sigmoid under another name
# should be caught by: lint (allow-list, not a list of forbidden names); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_idle[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return torch.special.expit(input)
