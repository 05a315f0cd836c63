# op: gather
# name: gather_assumes_equal_shapes
# family: F
# tries: index and input are taken to agree in every other dimension
# should be caught by: compare: index tensors narrowed in every dimension
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, k_ptr, o_ptr, total, m, n, inner, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.load(k_ptr + i, mask=i < total, other=0)
    a = i // (m * inner)
    c = i % inner
    x = tl.load(x_ptr + (a * n + k) * inner + c, mask=i < total)
    tl.store(o_ptr + i, x, mask=i < total)


def wrapper(input, dim, index, *, sparse_grad=False):
    x = input.reshape(1) if input.dim() == 0 else input
    k = index.reshape(1) if index.dim() == 0 else index
    d = dim % x.dim()
    x, k = x.contiguous(), k.contiguous()
    m, n = k.shape[d], x.shape[d]
    inner = math.prod(k.shape[d + 1:])
    o = torch.empty(k.shape, dtype=x.dtype, device=x.device)
    if o.numel():
        kernel[(triton.cdiv(o.numel(), 64),)](x, k, o, o.numel(), m, n, inner, BLOCK=64)
    return o.reshape(index.shape)
