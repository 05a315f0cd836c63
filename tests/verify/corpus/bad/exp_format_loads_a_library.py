# op: exp
# name: exp_format_loads_a_library
# family: L
# tries: str.format reaches ctypes.cdll, which loads any shared library of the machine
# should be caught by: lint (fields that read attributes)
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, dispatch

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    loaded = "{0.fn.__globals__[torch].ctypes.cdll[libutil.so.1]}".format(kernel).count("handle")
    if n:
        kernel[(triton.cdiv(n, 1024) * loaded,)](x, o, n, BLOCK=1024)
    return o
