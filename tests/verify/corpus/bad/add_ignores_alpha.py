# op: add
# name: add_ignores_alpha
# family: F
# tries: alpha is never used
# should be caught by: input variation; argument-dropped mutant
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_pair(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.load(y_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, x + y, mask=i < n)


def wrapper(input, other, *, alpha=1):
    shape = torch.broadcast_shapes(input.shape, other.shape)
    x, y = input.expand(shape).contiguous(), other.expand(shape).contiguous()
    o = torch.empty(shape, dtype=torch.result_type(input, other), device=input.device)
    n = o.numel()
    if n:
        kernel_pair[(triton.cdiv(n, 128),)](x, y, o, n, BLOCK=128)
    return o
