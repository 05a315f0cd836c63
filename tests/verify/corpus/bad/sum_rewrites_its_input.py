# op: sum
# name: sum_rewrites_its_input
# family: I
# tries: every element read is stored back: the same bytes, but an argument is written
# should be caught by: access: a store into an argument that the schema does not write
# outcome: WRONG
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = 0.0
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        tl.store(x_ptr + row * n + i, x, mask=i < n)
        acc += tl.sum(x, 0)
    tl.store(o_ptr + row, acc)


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
    o = torch.empty(shape, dtype=dtype or input.dtype, device=input.device)
    if o.numel():
        kernel[(o.numel(),)](x, o, x.shape[1], BLOCK=64)
    return o
