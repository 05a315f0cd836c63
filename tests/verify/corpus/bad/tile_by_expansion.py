# op: repeat
# name: tile_by_expansion
# family: J
# tries: a copy of the input, expanded over the repetitions: the repetitions share memory
# should be caught by: compare: a result whose elements share memory where ATen's do not
# outcome: WRONG
# layer: types


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, repeats):
    lead = len(repeats) - input.dim()
    x = input.contiguous()
    o = torch.empty_like(x)
    if o.numel():
        kernel[(triton.cdiv(o.numel(), 128),)](x, o, o.numel(), BLOCK=128)
    if all(r == 1 for r in repeats[lead:]):
        return o.expand(list(repeats[:lead]) + list(input.shape))
    y = torch.empty([r * s for r, s in zip(repeats, [1] * lead + list(input.shape))], dtype=x.dtype, device=x.device)
    z = y.view([v for r, s in zip(repeats, [1] * lead + list(input.shape)) for v in (r, s)])
    z.copy_(o.view([v for s in [1] * lead + list(input.shape) for v in (1, s)]))
    return y
