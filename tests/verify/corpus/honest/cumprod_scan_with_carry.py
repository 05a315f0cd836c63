# op: cumprod
# honest-but-unusual: tl.associative_scan with a combine function of our own, and a carry that is read out of the scanned block
# by a masked product; integers widen to int64; lines are walked where they lie, with their stride.


@triton.jit
def times(a, b):
    return a * b


@triton.jit
def kernel_scan(x_ptr, o_ptr, n, inner, FLOATING: tl.constexpr, BLOCK: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    base = (line // inner) * n * inner + line % inner
    kind: tl.constexpr = tl.float32 if FLOATING else tl.int64
    carry = tl.full((1,), 1, kind)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i * inner, mask=i < n, other=1).to(kind)
        y = tl.associative_scan(x, 0, times) * carry
        tl.store(o_ptr + base + i * inner, y.to(o_ptr.dtype.element_ty), mask=i < n)
        carry = tl.sum(tl.where(tl.arange(0, BLOCK) == BLOCK - 1, y, 0), 0, keep_dims=True).to(kind)


def wrapper(input, dim, *, dtype=None):
    kind = dtype or (input.dtype if input.dtype.is_floating_point else torch.int64)
    x = input.contiguous()
    o = torch.empty(x.shape, dtype=kind, device=x.device)
    if x.numel():
        length = x.shape[dim] if x.dim() else 1
        inner = math.prod(x.shape[dim % x.dim() + 1 :]) if x.dim() else 1
        kernel_scan[(x.numel() // length,)](x, o, length, inner, FLOATING=kind.is_floating_point, BLOCK=16)
    return o
