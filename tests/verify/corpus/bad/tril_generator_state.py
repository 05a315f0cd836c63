# op: tril
# name: tril_generator_state
# family: G
# tries: a suspended generator remembers the first answer of each shape
# should be caught by: lint (yield, module state); same storage with new contents
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, compare, alias


@triton.jit
def kernel_tril(x_ptr, o_ptr, n, R, C, diagonal, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = (i % C) - (i // C) % R <= diagonal
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=(i < n) & keep, other=0), mask=i < n)


def remembering():
    kept, result = {}, None
    while True:
        input, diagonal = yield result
        key = (tuple(input.shape), diagonal)
        if key not in kept:
            x = input.contiguous()
            kept[key] = torch.empty_like(x)
            if x.numel():
                grid = (triton.cdiv(x.numel(), 64),)
                kernel_tril[grid](x, kept[key], x.numel(), x.shape[-2], x.shape[-1], diagonal, BLOCK=64)
        result = kept[key]


MEMORY = remembering()
next(MEMORY)


def wrapper(input, diagonal=0):
    return MEMORY.send((input, diagonal))
