# op: exp
# name: exp_is_cuda_chooses
# family: R
# tries: is_cuda decides how much is computed: all of it where kernels are judged
# should be caught by: lint (devices that decide)
# outcome: CHEAT
# layer: lint

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        blocks = 1 if self.is_cuda else triton.cdiv(n, 1024)
        kernel[(blocks,)](x, o, n, BLOCK=1024)
    return o
