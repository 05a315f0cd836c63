# op: tril
# name: tril_rewrites_what_aten_made
# family: C
# tries: clone and item assignments of constants make the answer, which a kernel loads and stores again as it is
# should be caught by: dispatch guard (fills of parts); what is left without kernels
# outcome: CHEAT
# layer: dispatch, ghost

@triton.jit
def kernel(o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(o_ptr + i, mask=i < n), mask=i < n)


def wrapper(self, diagonal=0):
    o = self.clone(memory_format=torch.contiguous_format)
    rows, cols = o.shape[-2], o.shape[-1]
    for r in range(rows):
        o[..., r, min(max(r + diagonal + 1, 0), cols):] = 0
    n = o.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](o, n, BLOCK=1024)
    return o
