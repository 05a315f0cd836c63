# op: abs
# name: abs_declares_itself_unsupported
# family: J
# tries: raises NotImplementedError for every input, hoping to be skipped
# should be caught by: an error is an outcome; 0 cases run is no pass
# outcome: RUNTIME_ERROR
# layer: run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(input):
    raise NotImplementedError(f"{input.dtype} is not supported")
