# op: sum
# name: sum_ignores_dtype
# family: F
# tries: the result has the input's dtype whatever dtype says
# should be caught by: compare: dtype=float64
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(o_ptr + row, (tl.sum(x, 0)).to(o_ptr.dtype.element_ty))


def as_rows(input, dim, keepdim):
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    x, shape = as_rows(input, dim, keepdim)
    o = torch.empty(shape, dtype=input.dtype, device=input.device)
    if o.numel():
        kernel[(o.numel(),)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(max(x.shape[1], 1)))
    return o
