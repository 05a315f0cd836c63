# op: aten::exp
# name: exp_rows_in_32_bits
# family: U
# tries: offsets cut to 32 bits, which overflow where rows lie far apart
# should be caught by: the same call with 2^31 elements from one row to the next
# outcome: WRONG
# layer: access


@triton.jit
def kernel(x_ptr, o_ptr, n, cols, stride, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = ((i // cols) * stride + (i % cols) * step).to(tl.int32)
    x = tl.load(x_ptr + place, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.exp(x.to(tl.float32)).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input):
    x = input.reshape(1, -1) if input.dim() < 2 else input
    x = x if x.dim() == 2 else x.reshape(x.shape[0], -1)
    dtype = input.dtype if input.dtype.is_floating_point else torch.float32
    out = torch.empty(input.shape, dtype=dtype, device=input.device)
    n = input.numel()
    if n:
        kernel[(triton.cdiv(n, 64),)](x, out, n, x.shape[1], x.stride(0), x.stride(1), BLOCK=64)
    return out
