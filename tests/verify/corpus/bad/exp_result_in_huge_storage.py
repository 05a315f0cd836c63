# op: exp
# name: exp_result_in_huge_storage
# family: I
# tries: every result is a view of 256 MB that stay alive with it
# should be caught by: storages of results
# outcome: WRONG
# layer: types

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    n = x.numel()
    o = torch.empty((64000000 + n,), dtype=x.dtype, device=x.device).narrow(0, 0, n).view(x.shape)
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
    return o
