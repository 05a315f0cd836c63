# op: aten::flip
# name: flip_through_memory
# family: P
# tries: lanes load what others stored a line before, without a barrier
# should be caught by: lanes that do not wait for each other
# outcome: WRONG
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, inner, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    base = (line // inner) * n * inner + line % inner
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + base + i * inner, tl.load(x_ptr + base + i * inner, mask=i < n), mask=i < n)
    y = tl.load(o_ptr + base + (n - 1 - i) * inner, mask=i < n)
    tl.store(o_ptr + base + i * inner, y, mask=i < n)


def wrapper(self, dims):
    x = self.contiguous()
    if x.numel() == 0 or x.dim() == 0 or len(dims) == 0:
        return self.clone()
    for dim in dims:
        n = x.shape[dim]
        inner = 1
        for s in x.shape[dim % x.dim() + 1 :]:
            inner *= s
        o = torch.empty_like(x)
        kernel[(x.numel() // n,)](x, o, n, inner, BLOCK=triton.next_power_of_2(n))
        x = o
    return x
