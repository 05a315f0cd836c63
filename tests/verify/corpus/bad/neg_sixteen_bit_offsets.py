# op: neg
# name: neg_sixteen_bit_offsets
# family: P
# tries: offsets are computed in 16 bits, as a large tensor's are in 32: they wrap beyond 32767 elements
# should be caught by: input variation (sizes beyond each literal, here 32768)
# outcome: WRONG|CRASH|RUNTIME_ERROR
# layer: compare, access


@triton.jit
def kernel(x_ptr, o_ptr, n, limit, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int16)
    mask = (i < n) & (i < limit) & (i >= 0)
    tl.store(o_ptr + i, -tl.load(x_ptr + i, mask=mask, other=0), mask=mask)


def wrapper(input):
    x = input.contiguous()
    o = torch.zeros_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o, n, 32768, BLOCK=1024)
    return o
