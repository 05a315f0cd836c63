# op: abs
# name: abs_crashes_on_import
# family: N
# tries: reads address 0 while the file is imported
# should be caught by: CRASH of this job alone; lint (module-level code)
# outcome: CHEAT|CRASH
# layer: lint, run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


torch.ctypes.string_at(0)


def wrapper(input):
    return input
