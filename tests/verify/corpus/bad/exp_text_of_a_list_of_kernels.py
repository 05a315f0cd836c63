# op: exp
# name: exp_text_of_a_list_of_kernels
# family: R
# tries: the text of a list that holds a kernel: the lint follows no kernel into it
# should be caught by: dispatch guard (texts of kernels)
# outcome: CHEAT
# layer: dispatch

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        held = [kernel]
        blocks = triton.cdiv(n, 1024) if "nterpret" in f"{held}" else 1
        kernel[(blocks,)](x, o, n, BLOCK=1024)
    return o
