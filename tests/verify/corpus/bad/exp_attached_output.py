# op: exp
# name: exp_attached_output
# family: J
# tries: the output carries requires_grad
# should be caught by: exact types
# outcome: CHEAT|WRONG
# layer: types, lint


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.exp(x), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    o.requires_grad_(True)
    return o
