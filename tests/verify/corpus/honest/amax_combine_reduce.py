# op: amax
# name: amax_combine_reduce
# technique: tl.reduce with a custom combine that propagates NaN; dims normalised with a set


@triton.jit
def nan_max(a, b):
    return tl.where(a != a, a, tl.where(b != b, b, tl.where(a > b, a, b)))


@triton.jit
def amax_kernel(x_ptr, o_ptr, R, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    first = tl.load(x_ptr + pid * R)
    acc = tl.full([BLOCK], 0, x_ptr.dtype.element_ty) + first
    for s in range(0, R, BLOCK):
        o = s + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + pid * R + o, mask=o < R, other=0)
        v = tl.where(o < R, v, first)
        acc = nan_max(acc, v)
    tl.store(o_ptr + pid, tl.reduce(acc, 0, nan_max))


def wrapper(input, dim=(), keepdim=False, *, out=None):
    if isinstance(dim, int):
        dim = (dim,)
    nd = input.ndim
    red = {d % nd for d in dim} if nd and len(dim) else set(range(nd))
    keep = [d for d in range(nd) if d not in red]
    x = input.permute(*keep, *sorted(red)).contiguous() if nd else input
    R = math.prod(input.shape[d] for d in red)
    shape = [1 if d in red else s for d, s in enumerate(input.shape)] if keepdim else [input.shape[d] for d in keep]
    o = torch.empty(shape, dtype=input.dtype, device=input.device)
    if o.numel() == 0:
        return o
    if R == 0:
        raise IndexError("amax(): Expected reduction dim to have non-zero size.")
    is_bool = input.dtype == torch.bool
    amax_kernel[(o.numel(),)](x.view(torch.uint8) if is_bool else x, o.view(torch.uint8) if is_bool else o, R, BLOCK=64)
    return o
