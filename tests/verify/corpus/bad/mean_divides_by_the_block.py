# op: mean
# name: mean_divides_by_the_block
# family: F
# tries: divides by the padded length
# should be caught by: comparison (sizes that are no powers of two)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    tl.store(o_ptr + row, tl.sum(tl.load(x_ptr + row * n + i, mask=i < n, other=0), 0) / BLOCK)


def as_rows(input, dim, keepdim):
    """[rows, n] with the reduced dimensions last, and the shape of the result."""
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, dim=None, keepdim=False, *, dtype=None):
    x, shape = as_rows(input, dim, keepdim)
    o = torch.full(shape, float("nan"), dtype=dtype or input.dtype, device=input.device)
    n = x.shape[1]
    if o.numel() and n:
        kernel[(o.numel(),)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return o
