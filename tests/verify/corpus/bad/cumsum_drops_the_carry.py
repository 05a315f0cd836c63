# op: cumsum
# name: cumsum_drops_the_carry
# family: F
# tries: every block of 128 begins at 0 again
# should be caught by: input variation (sizes beyond each literal)
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + line * n + i, mask=i < n, other=0)
        tl.store(o_ptr + line * n + i, tl.cumsum(x, 0), mask=i < n)


def wrapper(input, dim, *, dtype=None):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    x = x.contiguous()
    o = torch.empty(x.shape, dtype=dtype or input.dtype, device=input.device)
    n = x.shape[-1]
    if o.numel():
        kernel[(o.numel() // n,)](x, o, n, BLOCK=128)
    return (o.movedim(-1, dim) if input.dim() else o).contiguous().reshape(input.shape)
