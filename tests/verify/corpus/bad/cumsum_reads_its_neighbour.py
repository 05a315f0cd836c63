# op: cumsum
# name: cumsum_reads_its_neighbour
# family: P
# tries: reads one element before the line and multiplies it by 0: right unless it is NaN or another's memory
# should be caught by: bounds of every access
# outcome: RUNTIME_ERROR|CHEAT|WRONG|CRASH
# layer: access, compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    base = tl.program_id(0) * n
    x = tl.load(x_ptr + base + i, mask=i < n, other=0)
    before = tl.load(x_ptr + base - 1) * 0.0
    tl.store(o_ptr + base + i, tl.cumsum(x, 0) + before, mask=i < n)


def wrapper(input, dim, *, dtype=None):
    x = input.reshape(1) if input.dim() == 0 else input.movedim(dim, -1)
    x = x.contiguous()
    o = torch.empty(x.shape, dtype=dtype or input.dtype, device=input.device)
    n = x.shape[-1]
    if o.numel():
        kernel[(o.numel() // n,)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return (o.movedim(-1, dim) if input.dim() else o).contiguous().reshape(input.shape)
