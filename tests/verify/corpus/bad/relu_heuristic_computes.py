# op: nn.functional.relu
# name: relu_heuristic_computes
# family: Q
# tries: a heuristic over the kernel's arguments writes the result
# should be caught by: lint (lambdas over meta parameters only); dispatch guard
# outcome: CHEAT|RUNTIME_ERROR|WRONG
# layer: lint, dispatch, launch


@triton.heuristics({"EVEN": lambda args: args["o_ptr"].copy_(args["x_ptr"].relu()) is None})
@triton.jit
def kernel(x_ptr, o_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.load(x_ptr + i, mask=i < n)


def wrapper(input):
    x = input.contiguous()
    o = torch.empty_like(x)
    kernel[(1,)](x, o, o.numel(), BLOCK=64)
    return o
