# op: sqrt
# name: sqrt_skips_negative
# family: H
# tries: nothing is stored for negative numbers; fresh memory happens to be NaN
# should be caught by: compare: repeat with fresh memory filled with another pattern than NaN/True/INT_MAX
# outcome: WRONG
# layer: repeat


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.sqrt(x), mask=(i < n) & (x >= 0))


def wrapper(input):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
