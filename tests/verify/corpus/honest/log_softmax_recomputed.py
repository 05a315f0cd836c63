# op: log_softmax
# honest-but-unusual: three passes over the row that load it anew each time instead of keeping it; the input is read through
# its own strides, and a row of nothing but -inf gives NaN as in ATen.


@triton.jit
def kernel_rows(x_ptr, o_ptr, n, inner, xs_row, xs_in, xs, os_row, os_in, os, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += (row // inner) * xs_row + (row % inner) * xs_in
    o_ptr += (row // inner) * os_row + (row % inner) * os_in
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(x_ptr + i * xs, mask=i < n, other=float("-inf")).to(tl.float32))
    high = tl.max(top, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x_ptr + i * xs, mask=i < n, other=float("-inf")).to(tl.float32) - high)
    shift = high + tl.log(tl.sum(total, 0))
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i * xs, mask=i < n, other=0).to(tl.float32)
        tl.store(o_ptr + i * os, (x - shift).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, dim, dtype=None):
    x = input if input.dim() else input.view(1)
    d = dim % x.dim()
    outer = x.reshape(math.prod(x.shape[:d]), x.shape[d], math.prod(x.shape[d + 1 :]))
    o = torch.empty(input.shape, dtype=dtype or input.dtype, device=input.device)
    out = o.view(outer.shape)
    if o.numel():
        a, b = outer.stride(), out.stride()
        rows = outer.shape[0] * outer.shape[2]
        kernel_rows[(rows,)](outer, out, outer.shape[1], outer.shape[2], a[0], a[2], a[1], b[0], b[2], b[1], BLOCK=64)
    return o
