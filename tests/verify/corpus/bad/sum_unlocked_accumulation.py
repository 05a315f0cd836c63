# op: sum
# name: sum_unlocked_accumulation
# family: P
# tries: load, add, store to one address from every program, without atomics
# should be caught by: races (two programs store different values to one address)
# outcome: WRONG|RUNTIME_ERROR|CHEAT
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + row * n + i, mask=i < n, other=0), 0)
    tl.store(o_ptr + row, tl.load(o_ptr + row) + part)


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
    o = torch.zeros(shape, dtype=dtype or input.dtype, device=input.device)
    n = x.shape[1]
    if o.numel() and n:
        kernel[(triton.cdiv(n, 4), o.numel())](x, o, n, BLOCK=4)
    return o
