# op: exp
# name: exp_autotune_last_of_six_loses_nan
# family: A
# tries: the last of six configurations, tried last, gives 0 for NaN
# should be caught by: every configuration in its turn, on NaN and infinities
# outcome: WRONG
# layer: repeat, compare

CONFIGS = [triton.Config({"BLOCK": 256, "CLEAN": clean}) for clean in (False, False, False, False, False, True)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def kernel(x_ptr, o_ptr, n, CLEAN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.where((x != x) & CLEAN, 0.0, tl.exp(x)), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, o, n)
    return o
