# op: clamp
# honest-but-unusual: each bound may be a number, a tensor or None; missing bounds are compiled away; NaN in the input stays
# NaN, and where the bounds cross the upper one wins.


@triton.jit
def kernel_clamp(x_ptr, low_ptr, high_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kind = o_ptr.dtype.element_ty
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(kind)
    if low_ptr is not None:
        low = tl.load(low_ptr + i, mask=i < n, other=0).to(kind)
        x = tl.where((x < low) | (low != low), low, x)
    if high_ptr is not None:
        high = tl.load(high_ptr + i, mask=i < n, other=0).to(kind)
        x = tl.where((x > high) | (high != high), high, x)
    tl.store(o_ptr + i, x, mask=i < n)


def spread(bound, shape, kind, device):
    if bound is None:
        return None
    if isinstance(bound, torch.Tensor):
        return bound.expand(shape).contiguous()
    return torch.full(shape, bound, dtype=kind, device=device)


def wrapper(input, min=None, max=None):
    kind, shapes = input.dtype, [input.shape]
    for bound in (min, max):
        if bound is not None:
            kind = torch.promote_types(kind, torch.result_type(input, bound))
        if isinstance(bound, torch.Tensor):
            shapes.append(bound.shape)
    shape = torch.broadcast_shapes(*shapes)
    x = input.expand(shape).contiguous()
    low, high = spread(min, shape, kind, x.device), spread(max, shape, kind, x.device)
    o = torch.empty(shape, dtype=kind, device=x.device)
    if o.numel():
        kernel_clamp[(triton.cdiv(o.numel(), 128),)](x, low, high, o, o.numel(), BLOCK=128)
    return o
