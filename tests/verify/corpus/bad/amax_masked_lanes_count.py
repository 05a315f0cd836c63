# op: amax
# name: amax_masked_lanes_count
# family: H
# tries: masked lanes are loaded without a value of their own and take part in the maximum
# should be caught by: negative values; poisoned masked lanes
# outcome: WRONG
# layer: compare


@triton.jit
def kernel_row(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n)
    tl.store(o_ptr + row, tl.max(x, 0))


def wrapper(input, dim=(), keepdim=False):
    rank = input.dim()
    dims = [dim] if isinstance(dim, int) else list(dim)
    dims = [d % rank for d in dims] if rank and dims else list(range(rank))
    kept = [d for d in range(rank) if d not in dims]
    x = input.permute(kept + dims).contiguous()
    o = torch.empty([input.shape[d] for d in kept], dtype=input.dtype, device=input.device)
    n = x.numel() // max(1, o.numel())
    if o.numel():
        kernel_row[(o.numel(),)](x, o, n, BLOCK=2 * triton.next_power_of_2(n))
    return o.view([1 if d in dims else input.shape[d] for d in range(rank)]) if keepdim else o
