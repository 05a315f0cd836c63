# op: index_select
# name: index_select_by_indexing
# family: C
# tries: advanced indexing with the index tensor is a gather without a name
# should be caught by: dispatch guard (aten::index)
# outcome: CHEAT
# layer: dispatch, ghost


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input, dim, index):
    x = input.movedim(dim, 0)
    return x[index].movedim(0, dim)
