# op: triu
# honest-but-unusual: a grid of three axes (row blocks, column blocks, matrices) with two-dimensional tiles; tiles wholly below
# the diagonal load nothing; the diagonal may lie far outside.


@triton.jit
def kernel_triu(x_ptr, o_ptr, R, C, diagonal, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)[:, None]
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, :]
    at = tl.program_id(2).to(tl.int64) * R * C + r * C + c
    inside = (r < R) & (c < C)
    x = tl.load(x_ptr + at, mask=inside & (c - r >= diagonal), other=0)
    tl.store(o_ptr + at, x, mask=inside)


def wrapper(input, diagonal=0):
    x = input.contiguous()
    o = torch.empty_like(x)
    if x.numel():
        R, C = x.shape[-2:]
        kernel_triu[(triton.cdiv(R, 8), triton.cdiv(C, 32), x.numel() // (R * C))](x, o, R, C, diagonal, BR=8, BC=32)
    return o
