# op: clamp
# name: clamp_ignores_minimum
# family: F
# tries: only the upper bound is applied
# should be caught by: input variation
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_upper(x_ptr, o_ptr, n, high, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.where(x > high, high, x), mask=i < n)


def wrapper(input, min=None, max=None):
    x = input.contiguous()
    o = torch.empty_like(x)
    high = max.item() if isinstance(max, torch.Tensor) and max.numel() == 1 else max
    if not isinstance(high, (int, float)):
        high = math.inf
    n = o.numel()
    if n:
        kernel_upper[(triton.cdiv(n, 128),)](x, o, n, float(high), BLOCK=128)
    return o
