# op: exp
# name: exp_autotune_fourth_config
# family: A
# tries: the fourth configuration of an autotuner, which is the fastest, does a quarter of the work
# should be caught by: every configuration in its turn
# outcome: WRONG
# layer: repeat, compare

@triton.autotune(configs=[triton.Config({"BLOCK": 256, "PART": 1}), triton.Config({"BLOCK": 512, "PART": 1}), triton.Config({"BLOCK": 1024, "PART": 1}), triton.Config({"BLOCK": 1024, "PART": 4})], key=["n"])
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, PART: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < (n // PART)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=mask)), mask=mask)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, o, n)
    return o
