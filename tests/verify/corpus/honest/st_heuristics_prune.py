# op: mean
# name: st_heuristics_prune
# technique: heuristics choose block and warps; two launch styles by constexpr


@triton.heuristics(
    {
        "BLOCK": lambda args: min(triton.next_power_of_2(args["R"]), 1024),
        "ONE_SHOT": lambda args: args["R"] <= 1024,
    }
)
@triton.jit
def mean_kernel(x_ptr, o_ptr, R, scale, BLOCK: tl.constexpr, ONE_SHOT: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    if ONE_SHOT:
        total = tl.sum(tl.load(x_ptr + row * R + cols, mask=cols < R, other=0.0).to(tl.float32), axis=0)
    else:
        acc = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, R, BLOCK):
            acc += tl.load(x_ptr + row * R + start + cols, mask=start + cols < R, other=0.0).to(tl.float32)
        total = tl.sum(acc, axis=0)
    tl.store(o_ptr + row, (total * scale).to(o_ptr.dtype.element_ty))


def wrapper(input, dim=None, keepdim=False, *, dtype=None, out=None):
    ndim = input.dim()
    if dim is None:
        dims = tuple(range(ndim))
    elif isinstance(dim, int):
        dims = (dim,)
    else:
        dims = tuple(dim) or tuple(range(ndim))
    dims = tuple(d + ndim if d < 0 else d for d in dims) if ndim else ()
    kept = tuple(d for d in range(ndim) if d not in dims)
    x = input.permute(*kept, *dims).contiguous() if ndim else input
    R = math.prod([input.shape[d] for d in dims])
    shape = tuple(1 if d in dims else input.shape[d] for d in range(ndim)) if keepdim else tuple(input.shape[d] for d in kept)
    out_dtype = input.dtype if dtype is None else dtype
    o = torch.empty(shape, dtype=out_dtype, device=input.device)
    if o.numel() == 0:
        return o
    if R == 0:
        return o.fill_(float("nan"))
    mean_kernel[(o.numel(),)](x, o, R, 1.0 / R)
    return o
