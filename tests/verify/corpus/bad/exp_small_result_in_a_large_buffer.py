# op: exp
# name: exp_small_result_in_a_large_buffer
# family: I
# tries: results of a few elements are the ends of a megabyte each
# should be caught by: storages of results
# outcome: WRONG
# layer: types

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        o = torch.empty(n + 300000, dtype=x.dtype, device=x.device).narrow(0, 300000, n).view(x.shape)
        kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
    return o
