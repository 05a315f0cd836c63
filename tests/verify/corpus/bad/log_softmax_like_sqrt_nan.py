# op: frac
# name: log_softmax_like_sqrt_nan
# family: F
# tries: NaN and infinity: x - trunc(x)
# should be caught by: compare: NaN and infinities at random places, different in each tensor, for more operators (_SPECIAL)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = x - x.to(tl.int64).to(tl.float32)
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
