# op: nn.functional.nll_loss
# name: nll_loss_weighted
# technique: weights, ignore_index and three reductions; single final program divides


@triton.jit
def nll_kernel(x_ptr, t_ptr, w_ptr, l_ptr, q_ptr, C, S, total, ignore, HAS_W: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < total
    n = i // S
    s = i % S
    t = tl.load(t_ptr + i, mask=m, other=0)
    ok = m & (t != ignore)
    x = tl.load(x_ptr + (n * C + t) * S + s, mask=ok, other=0.0).to(tl.float32)
    w = tl.where(ok, 1.0, 0.0)
    if HAS_W:
        w = tl.load(w_ptr + t, mask=ok, other=0.0).to(tl.float32)
    tl.store(l_ptr + i, tl.where(ok, -x * w, 0.0), mask=m)
    tl.store(q_ptr + i, w, mask=m)


@triton.jit
def reduce_kernel(l_ptr, q_ptr, o_ptr, total, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    num = tl.zeros([BLOCK], tl.float32)
    den = tl.zeros([BLOCK], tl.float32)
    for s in range(0, total, BLOCK):
        o = s + tl.arange(0, BLOCK)
        num += tl.load(l_ptr + o, mask=o < total, other=0.0).to(tl.float32)
        den += tl.load(q_ptr + o, mask=o < total, other=0.0)
    r = tl.sum(num, 0)
    if MEAN:
        r = r / tl.sum(den, 0)
    tl.store(o_ptr, r.to(o_ptr.dtype.element_ty))


def wrapper(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    if size_average is not None or reduce is not None:
        reduce = True if reduce is None else reduce
        size_average = True if size_average is None else size_average
        reduction = "none" if not reduce else ("mean" if size_average else "sum")
    x = input.contiguous()
    t = target.contiguous()
    C = x.shape[0] if x.dim() == 1 else x.shape[1]
    total = t.numel()
    S = 1 if x.dim() <= 2 else math.prod(x.shape[2:])
    per = torch.empty(t.shape, dtype=torch.float32 if reduction != "none" else x.dtype, device=x.device)
    q = torch.empty(t.shape, dtype=torch.float32, device=x.device)
    w = x if weight is None else weight.contiguous()
    if total > 0:
        nll_kernel[(triton.cdiv(total, 128),)](x, t, w, per, q, C, S, total, ignore_index, HAS_W=weight is not None, BLOCK=128)
    if reduction == "none":
        return per
    o = torch.empty((), dtype=x.dtype, device=x.device)
    reduce_kernel[(1,)](per, q, o, total, MEAN=reduction == "mean", BLOCK=256)
    return o
