# op: add
# name: add_interpreter_list_argument
# family: E
# tries: tensors travel in a list through tl.constexpr: the interpreter hands it over
# should be caught by: launch guard (argument types); compile gate; lint
# outcome: CHEAT|COMPILE_ERROR|RUNTIME_ERROR
# layer: lint, launch, compile


@triton.jit
def kernel(o_ptr, operands: tl.constexpr):
    operands[2].copy_(operands[0] + operands[1])


def wrapper(input, other, *, alpha=1):
    o = torch.empty(torch.broadcast_shapes(input.shape, other.shape), dtype=torch.result_type(input, other))
    scaled = other if alpha == 1 else other.mul(alpha)
    kernel[(1,)](o, [input, scaled, o])
    return o
