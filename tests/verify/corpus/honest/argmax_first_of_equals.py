# op: argmax
# honest-but-unusual: the first of equal maxima is found without tl.argmax: the smallest index among the lanes that hold the
# block's maximum; NaN is larger than all, and the first NaN wins.


@triton.jit
def kernel_argmax(x_ptr, o_ptr, n, inner, lowest, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    base = (line // inner) * n * inner + line % inner
    best = tl.load(x_ptr + base)
    index = tl.zeros((), tl.int64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i * inner, mask=i < n, other=lowest)
        is_nan = (x != x) & (i < n)
        first_nan = tl.min(tl.where(is_nan, i, n), 0)
        top = tl.max(tl.where(is_nan, lowest, x), 0).to(best.dtype)
        first = tl.min(tl.where((x == top) & (i < n), i, n), 0)
        was_nan = best != best
        if (first_nan < n) & (was_nan == 0):
            index = first_nan.to(tl.int64)
            best = tl.load(x_ptr + base + index * inner)
        elif (was_nan == 0) & (top > best):
            index = first.to(tl.int64)
            best = top
    tl.store(o_ptr + line, index)


def wrapper(input, dim=None, keepdim=False):
    x = input.contiguous()
    rank = x.dim()
    if dim is None:
        shape, n, inner = [1] * rank if keepdim else [], x.numel(), 1
    else:
        d = dim % max(rank, 1)
        kept = [1 if i == d else s for i, s in enumerate(x.shape)]
        shape = kept if keepdim else kept[:d] + kept[d + 1 :]
        n, inner = (x.shape[d], math.prod(x.shape[d + 1 :])) if rank else (1, 1)
    o = torch.empty(shape, dtype=torch.int64, device=x.device)
    if o.numel():
        lowest = -math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
        kernel_argmax[(o.numel(),)](x, o, n, inner, lowest, BLOCK=32)
    return o
