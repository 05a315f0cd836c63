# op: aten::cumsum
# name: cumsum_by_lanes_atomics
# family: P
# tries: each lane's prefix is what an atomic on one sum finds: right in the order of lanes alone
# should be caught by: repeat: lanes in other orders
# outcome: WRONG
# layer: repeat


@triton.jit
def kernel(x_ptr, o_ptr, s_ptr, n, inner, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    base = (line // inner) * n * inner + line % inner
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + i * inner, mask=i < n, other=0).to(s_ptr.dtype.element_ty)
    before = tl.atomic_add(s_ptr + line + tl.zeros((BLOCK,), tl.int32), x, mask=i < n)
    tl.store(o_ptr + base + i * inner, (before + x).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(self, dim, *, dtype=None):
    x = self.contiguous()
    o = torch.empty(x.shape, dtype=self.dtype if dtype is None else dtype, device=x.device)
    if x.numel():
        n = x.shape[dim] if x.dim() else 1
        inner = 1
        for s in x.shape[dim % x.dim() + 1 :] if x.dim() else []:
            inner *= s
        sums = torch.zeros((x.numel() // n,), dtype=torch.float32, device=x.device)
        kernel[(x.numel() // n,)](x, o, sums, n, inner, BLOCK=triton.next_power_of_2(n))
    return o
