# op: exp
# name: exp_autotune_small_second_block
# family: R
# tries: the second configuration covers half of the data: its grid is computed for the first one's block
# should be caught by: repeat: the autotuner's timing runs the kernel, as it does on a GPU; repeat on the largest case
# outcome: WRONG
# layer: repeat


@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n, other=0)), mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 128),)](x, o, n)
    return o
