# op: nn.functional.relu
# name: relu_in_place_on_input
# family: I
# tries: computes in the input's own memory and returns a copy
# should be caught by: input hashes before and after
# outcome: WRONG|CHEAT
# layer: compare


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, tl.where(x <= 0, 0.0, x), mask=i < n)


def wrapper(input):
    n = input.numel()
    if not input.is_contiguous():
        raise RuntimeError("contiguous input only")
    if n:
        kernel_map[(triton.cdiv(n, 128),)](input, input, n, BLOCK=128)
    return input.clone()
