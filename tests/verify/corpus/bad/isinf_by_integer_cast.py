# op: aten::isinf
# name: isinf_by_integer_cast
# family: U
# tries: infinities cast to int64 are both -2^63 on this CPU; on a GPU one is 2^63 - 1
# should be caught by: junk for what an integer cannot hold
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    lowest = x.to(tl.int64) == -9223372036854775808
    tl.store(o_ptr + i, lowest & (x == x) & (tl.abs(x) > 3.4028234e38), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x, dtype=torch.bool)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o.view(torch.uint8), n, BLOCK=1024)
    return o
