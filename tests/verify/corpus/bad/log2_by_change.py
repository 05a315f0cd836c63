# op: log2
# name: log2_by_change
# family: S
# tries: log(x) * 1.4427
# should be caught by: compare: log2, exp2, log, sin, cos as pointwise
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    y = tl.log(x) * 1.4427
    tl.store(o_ptr + i, y.to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=input.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
