# op: where
# name: where_skips_its_test
# family: L
# tries: raises unittest.SkipTest
# should be caught by: an error is an outcome; lint (import)
# outcome: CHEAT|RUNTIME_ERROR
# layer: lint, run


@triton.jit
def kernel_idle(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def wrapper(condition, input, other):
    import unittest

    raise unittest.SkipTest("not applicable")
