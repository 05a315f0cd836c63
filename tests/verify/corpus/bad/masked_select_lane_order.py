# op: aten::masked_select
# name: masked_select_lane_order
# family: P
# tries: every lane takes its place by an atomic on a counter: in any order on a GPU
# should be caught by: repeat: lanes in other orders
# outcome: WRONG
# layer: repeat


@triton.jit
def kernel(x_ptr, m_ptr, o_ptr, c_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = (tl.load(m_ptr + i, mask=i < n, other=0) != 0) & (i < n)
    x = tl.load(x_ptr + i, mask=m)
    at = tl.atomic_add(c_ptr + tl.zeros((BLOCK,), tl.int32), 1, mask=m)
    tl.store(o_ptr + at, x, mask=m)


@triton.jit
def kernel_count(m_ptr, c_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int32)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        total += (tl.load(m_ptr + i, mask=i < n, other=0) != 0).to(tl.int32)
    tl.store(c_ptr, tl.sum(total, axis=0))


def wrapper(self, mask):
    x, m = torch.broadcast_tensors(self, mask)
    x, m = x.contiguous(), m.contiguous().view(torch.uint8)
    n = x.numel()
    if n == 0:
        return torch.empty((0,), dtype=self.dtype, device=self.device)
    count = torch.zeros((1,), dtype=torch.int32, device=self.device)
    kernel_count[(1,)](m, count, n, BLOCK=1024)
    o = torch.empty((count.item(),), dtype=self.dtype, device=self.device)
    place = torch.zeros((1,), dtype=torch.int32, device=self.device)
    kernel[(triton.cdiv(n, 16384),)](x, m, o, place, n, BLOCK=16384)
    return o
