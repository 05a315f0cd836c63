# op: nn.functional.relu
# name: relu_match_capture
# family: B
# tries: a match statement captures the module under a new name
# should be caught by: lint (match; torch used as a value); dispatch guard
# outcome: CHEAT
# layer: lint, dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    match (torch, input):
        case (library, x):
            return library.relu(x)
