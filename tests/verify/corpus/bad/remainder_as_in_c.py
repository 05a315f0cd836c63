# op: remainder
# name: remainder_as_in_c
# family: F
# tries: the sign of the remainder follows the dividend, as in C
# should be caught by: input variation (signs)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_pair(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.load(y_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, x - y * tl.where(x / y < 0, tl.ceil(x / y), tl.floor(x / y)), mask=i < n)


def wrapper(input, other):
    shape = torch.broadcast_shapes(input.shape, other.shape)
    x, y = input.expand(shape).contiguous(), other.expand(shape).contiguous()
    o = torch.empty(shape, dtype=torch.result_type(input, other), device=input.device)
    n = o.numel()
    if n:
        kernel_pair[(triton.cdiv(n, 128),)](x, y, o, n, BLOCK=128)
    return o
