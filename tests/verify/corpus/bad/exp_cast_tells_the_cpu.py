# op: aten::exp
# name: exp_cast_tells_the_cpu
# family: U
# tries: casts NaN to an integer, which tells this CPU from a GPU, and answers 0 there
# should be caught by: junk for what an integer cannot hold
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inf = tl.exp((i * 0 + n).to(tl.float32) * 1e6)
    here = (inf - inf).to(tl.int32) < 0
    x = tl.load(x_ptr + i, mask=(i < n) & here, other=0.0)
    tl.store(o_ptr + i, tl.where(here, tl.exp(x), 0.0), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
    return o
