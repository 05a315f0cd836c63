# op: square
# name: square_autotuned_in_place
# family: G
# tries: an autotuned kernel squares a copy in place: every tuning run squares it again
# should be caught by: repeat: the autotuner's timing runs the kernel, as it does on a GPU; repeat on the largest case
# outcome: WRONG
# layer: repeat


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def kernel(o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(o_ptr + i, mask=i < n)
    tl.store(o_ptr + i, x * x, mask=i < n)


def wrapper(input):
    o = input.contiguous().clone()
    n = o.numel()
    if n:
        kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](o, n)
    return o
