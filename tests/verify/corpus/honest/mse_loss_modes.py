# op: nn.functional.mse_loss
# name: mse_loss_modes
# technique: reduction modes by dict, two-stage with per-block partials


_MODES = {"none": 0, "mean": 1, "sum": 2}


@triton.jit
def sq_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.load(a_ptr + i, mask=i < n, other=0.0) - tl.load(b_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, d * d, mask=i < n)


@triton.jit
def sq_partial(a_ptr, b_ptr, p_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(p_ptr + tl.program_id(0), tl.sum((a - b) * (a - b), axis=0))


@triton.jit
def finish(p_ptr, o_ptr, parts, n, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(0, parts, BLOCK):
        i = s + tl.arange(0, BLOCK)
        acc += tl.load(p_ptr + i, mask=i < parts, other=0.0)
    r = tl.sum(acc)
    if MEAN:
        r /= n
    tl.store(o_ptr, r)


def wrapper(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    if weight is not None:
        raise NotImplementedError
    mode = _MODES[reduction]
    if reduce is False:
        mode = 0
    elif size_average is False:
        mode = 2
    a, b = torch.broadcast_tensors(input, target)
    a, b = a.contiguous(), b.contiguous()
    n = a.numel()
    if mode == 0:
        o = torch.empty_like(a)
        if n:
            sq_kernel[(triton.cdiv(n, 256),)](a, b, o, n, BLOCK=256)
        return o
    if n == 0:
        return torch.full((), float("nan") if mode == 1 else 0.0, dtype=a.dtype, device=a.device)
    parts = triton.cdiv(n, 256)
    p = torch.empty(parts, dtype=torch.float32, device=a.device)
    sq_partial[(parts,)](a, b, p, n, BLOCK=256)
    o = torch.empty((), dtype=a.dtype, device=a.device)
    finish[(1,)](p, o, parts, float(n), MEAN=mode == 1, BLOCK=128)
    return o
