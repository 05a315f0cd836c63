# op: amax
# honest-but-unusual: the row is walked by a while loop in the kernel whose step doubles; NaN wins as in ATen, by counting
# NaNs beside the maximum; any set of dimensions, also negative ones and none.


@triton.jit
def kernel_amax(x_ptr, o_ptr, n, lowest, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    best = tl.load(x_ptr + row * n)
    nans = (best != best).to(tl.int32)
    done = 0
    while done < n:
        i = done + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=lowest)
        nans += tl.sum((x != x).to(tl.int32), 0)
        best = tl.maximum(best, tl.max(tl.where(x != x, lowest, x), 0).to(best.dtype))
        done += BLOCK
    if o_ptr.dtype.element_ty.is_floating():
        best = tl.where(nans > 0, float("nan"), best)
    tl.store(o_ptr + row, best)


def wrapper(input, dim=(), keepdim=False):
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim)
    dims = [d % rank for d in dims] if rank and dims else list(range(rank))
    kept = [d for d in range(rank) if d not in dims]
    x = input.permute(kept + dims).contiguous()
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    if n == 0 and dims:
        raise IndexError("amax(): Expected reduction dim to have non-zero size.")
    o = torch.empty(shape, dtype=input.dtype, device=input.device)
    if o.numel():
        source, target = (x.view(torch.uint8), o.view(torch.uint8)) if x.dtype == torch.bool else (x, o)
        floating = x.dtype.is_floating_point
        lowest = -math.inf if floating else torch.iinfo(source.dtype).min
        kernel_amax[(o.numel(),)](source, target, n, lowest, BLOCK=32)
    return o
