# op: mean
# name: mean_scratch_never_cleared
# family: H
# tries: adds to a scratch buffer that nobody wrote before
# should be caught by: poisoned allocations
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_add_up(x_ptr, acc_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(acc_ptr + row, tl.sum(tl.load(x_ptr + row * n + i, mask=i < n, other=0), 0) / n)


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
    n = x.shape[1]
    if o.numel():
        kernel_add_up[(max(1, triton.cdiv(n, 64)), o.numel())](x, o, n, BLOCK=64)
    return o
