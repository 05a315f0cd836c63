# op: index_select
# honest-but-unusual: the address of every load is itself loaded (a gather); one program a row of the result, blocks over what
# lies inside; index may be 0-d.


@triton.jit
def kernel_select(x_ptr, index_ptr, o_ptr, length, count, inner, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.load(index_ptr + row % count).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + ((row // count) * length + at) * inner + i, mask=i < inner)
    tl.store(o_ptr + row * inner + i, x, mask=i < inner)


def wrapper(input, dim, index):
    x = input.contiguous()
    index = index.reshape(-1).contiguous()
    if x.dim() == 0:
        shape, length, inner, outer = [], 1, 1, 1
    else:
        d = dim % x.dim()
        shape = [*x.shape[:d], index.numel(), *x.shape[d + 1 :]]
        length, inner, outer = x.shape[d], math.prod(x.shape[d + 1 :]), math.prod(x.shape[:d])
    o = torch.empty(shape, dtype=x.dtype, device=x.device)
    if o.numel():
        count = index.numel()
        kernel_select[(outer * count, triton.cdiv(inner, 64))](x, index, o, length, count, inner, BLOCK=64)
    return o
