# op: aten::argmax
# name: argmax_combine_first_of_equals
# technique: a combine function of comparisons joined by & and |, right in any order


@triton.jit
def first_larger(x, i, y, j):
    nans = (x != x) & (y != y)
    right = (((y > x) | (y != y)) & (x == x)) | (((x == y) | nans) & (j < i))
    return tl.where(right, y, x), tl.where(right, j, i)


@triton.jit
def kernel(x_ptr, o_ptr, n, inner, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    base = (line // inner) * n * inner + line % inner
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + i * inner, mask=i < n, other=0)
    first = tl.load(x_ptr + base)
    x = tl.where(i < n, x, first)  # equal to an earlier one
    _, at = tl.reduce((x, i), 0, first_larger)
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
