# op: triu
# name: triu_zero_times
# family: S
# tries: multiplies with a mask of 0 and 1: NaN and inf stay
# should be caught by: compare: NaN and infinities at random places, different in each tensor, for more operators (_SPECIAL)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, r, c, k, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = x * ((i % c) >= (i // c) % r + k).to(tl.float32)
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, diagonal=0):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    r, c, k = x.shape[-2], x.shape[-1], diagonal
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, r, c, k, BLOCK=128)
    return o
