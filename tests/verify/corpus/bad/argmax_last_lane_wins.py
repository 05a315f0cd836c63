# op: aten::argmax
# name: argmax_last_lane_wins
# family: P
# tries: all lanes that hold the maximum store their index in one place; no order is promised
# should be caught by: different values stored at once by lanes of one program
# outcome: WRONG
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, inner, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    base = (line // inner) * n * inner + line % inner
    i = BLOCK - 1 - tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + i * inner, mask=i < n, other=float("-inf")).to(tl.float32)
    nan = (x != x) & (i < n)
    some = tl.sum(nan.to(tl.int32), axis=0) > 0
    top = tl.max(tl.where(nan, float("-inf"), x), axis=0)
    hit = tl.where(some, nan, x == top) & (i < n)
    tl.store(o_ptr + line + tl.zeros((BLOCK,), tl.int32), i.to(tl.int64), mask=hit)


def wrapper(self, dim=None, keepdim=False):
    x = self.contiguous()
    shape = list(x.shape)
    if dim is None or x.dim() == 0:
        n, inner, out, kept = x.numel(), 1, [], [1] * x.dim()
    else:
        d = dim % x.dim()
        n, inner = shape[d], 1
        for s in shape[d + 1:]:
            inner *= s
        out, kept = shape[:d] + shape[d + 1:], shape[:d] + [1] + shape[d + 1:]
    o = torch.empty(out, dtype=torch.int64, device=x.device)
    if o.numel():
        kernel[(o.numel(),)](x, o, n, inner, BLOCK=triton.next_power_of_2(n))
    return o.view(kept) if keepdim else o
