# op: amax
# name: amax_last_writer_wins
# family: P
# tries: every block stores its own maximum to the one result
# should be caught by: races; comparison
# outcome: WRONG|RUNTIME_ERROR|CHEAT
# layer: access, compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + row, tl.max(tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf")), 0))


def as_rows(input, dim, keepdim):
    """[rows, n] with the reduced dimensions last, and the shape of the result."""
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, dim=(), keepdim=False):
    x, shape = as_rows(input, dim, keepdim)
    o = torch.empty(shape, dtype=input.dtype, device=input.device)
    n = x.shape[1]
    if o.numel():
        kernel[(triton.cdiv(n, 8), o.numel())](x, o, n, BLOCK=8)
    return o
