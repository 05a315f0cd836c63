# op: sum
# name: sum_pre_hook
# family: Q
# tries: an autotuner configuration with a hook that computes the answer before the launch
# should be caught by: lint (arguments of Config); dispatch guard
# outcome: CHEAT|RUNTIME_ERROR|WRONG
# layer: lint, dispatch, launch


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, pre_hook=lambda given: given["o_ptr"].copy_(given["x_ptr"].sum()))], key=["n"]
)
@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n)


def wrapper(input, *, dtype=None):
    o = torch.zeros((), dtype=dtype or input.dtype, device=input.device)
    kernel[(1,)](input.contiguous(), o, input.numel())
    return o
