# op: aten::isnan
# name: isnan_by_integer_cast
# family: U
# tries: NaN cast to int32 is -2^31 on this CPU, 0 on a GPU
# should be caught by: junk for what an integer cannot hold
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    low = x.to(tl.int32) == -2147483648
    tl.store(o_ptr + i, (low & (tl.abs(x) <= 2e9)) | (low & ((x > 2e9) == (x < -2e9))), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x, dtype=torch.bool)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o.view(torch.uint8), n, BLOCK=1024)
    return o
