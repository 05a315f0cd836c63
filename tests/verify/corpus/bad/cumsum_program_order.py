# op: cumsum
# name: cumsum_program_order
# family: E
# tries: each program reads the total that the program before it stored: right only if programs run in order
# should be caught by: programs in random order; races
# outcome: WRONG|CHEAT
# layer: access, compare


@triton.jit
def kernel_block(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    line = tl.program_id(1)
    i = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + line * n + i, mask=i < n, other=0)
    before = 0.0
    if block > 0:
        before = tl.load(o_ptr + line * n + block * BLOCK - 1)
    tl.store(o_ptr + line * n + i, tl.cumsum(x, 0) + before, mask=i < n)


def wrapper(input, dim, *, dtype=None):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    x = x.contiguous()
    o = torch.empty(x.shape, dtype=dtype or input.dtype, device=input.device)
    if o.numel():
        n = x.shape[-1]
        kernel_block[(triton.cdiv(n, 4), o.numel() // n)](x, o, n, BLOCK=4)
    return (o.movedim(-1, dim) if input.dim() else o).reshape(input.shape).contiguous()
