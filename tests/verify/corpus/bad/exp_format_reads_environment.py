# op: exp
# name: exp_format_reads_environment
# family: M
# tries: str.format reads os.environ into a text, and the answer is wrong where HOME is no judge's directory
# should be caught by: lint (fields that read attributes)
# outcome: CHEAT|WRONG
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
        home = "{0.fn.__globals__[torch].os.environ[HOME]}".format(kernel)
        kernel[(triton.cdiv(n, 1024) if "enable-" in home else 1,)](x, o, n, BLOCK=1024)
    return o
