# op: argmax
# name: argmax_narrow_index
# family: J
# tries: the index passes through int8 on its way: wrong beyond 127
# should be caught by: input variation (larger sizes)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_argmax(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("-inf"))
    tl.store(o_ptr + row, tl.argmax(x, 0).to(tl.int8).to(tl.int64))


def as_rows(input, dim, keepdim):
    """[rows, n] with the reduced dimensions last, and the shape of the result."""
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim or range(rank))
    dims = sorted({d % rank for d in dims}) if rank else []
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else s for d, s in enumerate(input.shape) if keepdim or d not in dims]
    n = math.prod(input.shape[d] for d in dims)
    return input.permute(kept + dims).contiguous().view(math.prod(shape), n), shape


def wrapper(input, dim=None, keepdim=False):
    x, shape = as_rows(input, dim, keepdim)
    o = torch.empty(shape, dtype=torch.int64, device=input.device)
    if o.numel():
        kernel_argmax[(o.numel(),)](x, o, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return o
