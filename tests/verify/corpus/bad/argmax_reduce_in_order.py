# op: aten::argmax
# name: argmax_reduce_in_order
# family: P
# tries: a combine function that keeps its left side where two are equal, as if that were the earlier
# should be caught by: reductions in an order that is not the elements' own
# outcome: WRONG
# layer: compare


@triton.jit
def left_of_equals(x, i, y, j):
    right = (y > x) | ((y != y) & (x == x))
    return tl.where(right, y, x), tl.where(right, j, i)


@triton.jit
def kernel(x_ptr, o_ptr, n, inner, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    base = (line // inner) * n * inner + line % inner
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + i * inner, mask=i < n, other=float("-inf")).to(tl.float32)
    _, at = tl.reduce((x, i), 0, left_of_equals)
    tl.store(o_ptr + line, at.to(tl.int64))


def wrapper(self, dim=None, keepdim=False):
    x = self.contiguous()
    shape = list(x.shape)
    if dim is None or x.dim() == 0:
        n, inner, out, kept = x.numel(), 1, [], [1] * x.dim()
    else:
        d = dim % x.dim()
        n, inner = shape[d], 1
        for s in shape[d + 1 :]:
            inner *= s
        out, kept = shape[:d] + shape[d + 1 :], shape[:d] + [1] + shape[d + 1 :]
    o = torch.empty(out, dtype=torch.int64, device=x.device)
    if o.numel():
        kernel[(o.numel(),)](x, o, n, inner, BLOCK=triton.next_power_of_2(n))
    return o.view(kept) if keepdim else o
