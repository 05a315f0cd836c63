# op: aten::flip
# name: flip_negative_gather
# family: U
# tries: tl.gather with negative indices: NumPy counts from the end, a GPU reads another register
# should be caught by: junk for what is gathered from no lane
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, inner, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    base = (line // inner) * n * inner + line % inner
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + (i - (BLOCK - n)) * inner, mask=i >= BLOCK - n, other=0.0)
    y = tl.gather(x, -1 - i, 0)
    tl.store(o_ptr + base + i * inner, y, mask=i < n)


@triton.jit
def kernel_copy(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(self, dims):
    x = self.contiguous()
    if x.numel() == 0:
        return torch.empty_like(x)
    if x.dim() == 0 or len(dims) == 0:
        o = torch.empty_like(x)
        kernel_copy[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
    for dim in dims:
        n = x.shape[dim]
        inner = 1
        for s in x.shape[dim % x.dim() + 1:]:
            inner *= s
        o = torch.empty_like(x)
        kernel[(x.numel() // n,)](x, o, n, inner, BLOCK=triton.next_power_of_2(n))
        x = o
    return x
