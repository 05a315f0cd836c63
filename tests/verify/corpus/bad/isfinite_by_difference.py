# op: isfinite
# name: isfinite_by_difference
# family: F
# tries: x - x == 0 but infinity compared with the largest half
# should be caught by: compare: values near the dtype's largest
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.abs(x) < 65504.0
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
