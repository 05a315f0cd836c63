# op: aminmax
# name: aminmax_loses_nan
# family: F
# tries: NaN of a row is skipped
# should be caught by: compare: NaN and infinities at random places, different in each tensor, for more operators (_SPECIAL)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, v_ptr, k_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    r_v = tl.min(tl.where(i < n, x, float('inf')), 0)
    r_k = tl.max(x, 0)
    tl.store(v_ptr + row, r_v.to(v_ptr.dtype.element_ty))
    tl.store(k_ptr + row, r_k.to(k_ptr.dtype.element_ty))


def as_rows(input, dim, keepdim):
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, *, dim=None, keepdim=False):
    x, shape = as_rows(input, dim, keepdim)
    v = torch.empty(shape, dtype=input.dtype, device=input.device)
    k = torch.empty(shape, dtype=input.dtype, device=input.device)
    if v.numel():
        kernel[(v.numel(),)](x, v, k, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return v, k
