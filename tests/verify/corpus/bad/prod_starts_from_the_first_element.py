# op: prod
# name: prod_starts_from_the_first_element
# family: F
# tries: an empty input gives what lies in memory, and one element counts twice
# should be caught by: input variation (empty, sizes 0 and 1)
# outcome: WRONG|RUNTIME_ERROR|CHEAT|CRASH
# layer: compare, access


@triton.jit
def kernel(x_ptr, o_ptr, n):
    row = tl.program_id(0)
    total = tl.load(x_ptr + row * n)
    for k in range(1 if n > 1 else 0, n):
        total *= tl.load(x_ptr + row * n + k)
    tl.store(o_ptr + row, total)


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
    o = torch.empty(shape, dtype=dtype or input.dtype, device=input.device)
    if o.numel():
        kernel[(o.numel(),)](x, o, x.shape[1])
    return o
