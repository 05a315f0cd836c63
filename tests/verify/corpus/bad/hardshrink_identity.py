# op: nn.functional.hardshrink
# name: hardshrink_identity
# family: F
# tries: a copy: OpInfo's values all lie outside the dead zone
# should be caught by: input variation (values around 0)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, x, mask=i < n)


def wrapper(input, lambd=0.5):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
