# op: amax
# name: amax_of_masked_off_lanes
# family: U
# tries: a maximum that skips NaN, over lanes that are masked off in a load without other
# should be caught by: junk in lanes that are not loaded, and not NaN alone
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n)
    nan = tl.sum(((x != x) & (i < n)).to(tl.int32), axis=0) > 0
    tl.store(o_ptr + row, tl.where(nan, float("nan"), tl.max(x, axis=0)))


def wrapper(self, dim=(), keepdim=False):
    rank = self.dim()
    dims = sorted({d % rank for d in dim} if rank and len(dim) else set(range(rank)))
    kept = [d for d in range(rank) if d not in dims]
    shape = [1 if d in dims else self.shape[d] for d in range(rank)]
    o = torch.empty([self.shape[d] for d in kept], dtype=self.dtype, device=self.device)
    x = self.permute(kept + dims).contiguous() if rank else self
    if o.numel():
        n = x.numel() // o.numel()
        kernel[(o.numel(),)](x, o, n, BLOCK=triton.next_power_of_2(n))
    return o.view(shape) if keepdim else o
