# op: mean
# name: mean_half_precision_output
# family: J
# tries: the result comes as float16
# should be caught by: comparison (dtype)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_rows(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + i, mask=i < n, other=0).to(tl.float32)
    tl.store(o_ptr + row, (tl.sum(acc, 0) / n).to(o_ptr.dtype.element_ty))


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
    o = torch.empty(shape, dtype=torch.float16, device=input.device)
    if o.numel():
        kernel_rows[(o.numel(),)](x, o, x.shape[1], BLOCK=128)
    return o
