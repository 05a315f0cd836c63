# op: count_nonzero
# name: count_nonzero_by_sum
# family: F
# tries: adds absolute values, rounded
# should be caught by: compare: denormal values, which the limit of 48 cuts off
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(o_ptr + row, (tl.sum(tl.where(tl.abs(x) > 1e-7, 1, 0), 0)).to(o_ptr.dtype.element_ty))


def as_rows(input, dim, keepdim):
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, dim=None):
    x, shape = as_rows(input, dim, False)
    o = torch.empty(shape, dtype=torch.int64, device=input.device)
    if o.numel():
        kernel[(o.numel(),)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(max(x.shape[1], 1)))
    return o
