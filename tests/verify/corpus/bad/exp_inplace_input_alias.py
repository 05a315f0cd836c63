# op: exp
# public: exp_inplace_input_alias
# family: I
# tries: overwrites the input and returns it: values are right, the caller's tensor is destroyed
# should be caught by: comparison (inputs bit-identical afterwards, no alias unless the op is a view)
# outcome: WRONG|CHEAT
# layer: compare

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    tl.store(o_ptr + i, tl.exp(x).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, *, out=None):
    n = input.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](input, input, n, B=64)
    return input
