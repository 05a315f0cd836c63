# op: max
# name: max_dim_tuple
# technique: three overloads in one wrapper: all elements, dim (values, indices), binary maximum


@triton.jit
def max_dim_kernel(x_ptr, v_ptr, i_ptr, n, inner, WITH_INDEX: tl.constexpr):
    pid = tl.program_id(0)
    base = (pid // inner) * n * inner + pid % inner
    best = tl.load(x_ptr + base)
    at = tl.full((), 0, tl.int64)
    for j in range(1, n):
        v = tl.load(x_ptr + base + j * inner)
        better = (v > best) | ((v != v) & (best == best))
        best = tl.where(better, v, best)
        at = tl.where(better, j, at)
    tl.store(v_ptr + pid, best)
    if WITH_INDEX:
        tl.store(i_ptr + pid, at)


@triton.jit
def maximum_kernel(a_ptr, b_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0).to(o_ptr.dtype.element_ty)
    b = tl.load(b_ptr + i, mask=i < n, other=0).to(o_ptr.dtype.element_ty)
    r = tl.where((a > b) | (a != a), a, b)
    tl.store(o_ptr + i, r, mask=i < n)


def wrapper(input, dim=None, keepdim=False, *, out=None):
    if isinstance(dim, torch.Tensor):
        a, b = torch.broadcast_tensors(input, dim)
        a, b = a.contiguous(), b.contiguous()
        o = torch.empty(a.shape, dtype=torch.promote_types(a.dtype, b.dtype), device=a.device)
        if o.numel():
            maximum_kernel[(triton.cdiv(o.numel(), 64),)](a, b, o, o.numel(), BLOCK=64)
        return o
    x = input.contiguous()
    if dim is None:
        o = torch.empty((), dtype=x.dtype, device=x.device)
        max_dim_kernel[(1,)](x, o, None, x.numel(), 1, WITH_INDEX=False)
        return o
    shape = list(x.shape)
    d = dim % max(x.dim(), 1)
    n = shape[d] if shape else 1
    inner = math.prod(shape[d + 1 :])
    if shape:
        shape = shape[:d] + ([1] if keepdim else []) + shape[d + 1 :]
    values = torch.empty(shape, dtype=x.dtype, device=x.device)
    indices = torch.empty(shape, dtype=torch.int64, device=x.device)
    if values.numel():
        max_dim_kernel[(values.numel(),)](x, values, indices, n, inner, WITH_INDEX=True)
    return values, indices
