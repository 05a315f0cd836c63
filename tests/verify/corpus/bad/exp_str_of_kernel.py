# op: exp
# name: exp_str_of_kernel
# family: R
# tries: the text of a kernel tells the interpreter from the compiler
# should be caught by: lint (texts of kernels); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        blocks = triton.cdiv(n, 1024) if str(kernel).count("nterpret") else 1
        kernel[(blocks,)](x, o, n, BLOCK=1024)
    return o
