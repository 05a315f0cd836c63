# op: cumsum
# name: cumsum_ignores_dtype
# family: F
# tries: dtype is ignored
# should be caught by: compare: dtype=float64
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    v_o = tl.cumsum(x, 0)
    tl.store(o_ptr + row * n + i, v_o.to(o_ptr.dtype.element_ty), mask=i < n)


def lines_of(input, dim):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    return x.contiguous()


def back(o, input, dim):
    return (o.movedim(-1, dim) if input.dim() else o.reshape(())).contiguous()


def wrapper(input, dim, *, dtype=None):
    x = lines_of(input, dim)
    o = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.shape[-1]
    if x.numel():
        kernel[(x.numel() // n,)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return back(o, input, dim)
