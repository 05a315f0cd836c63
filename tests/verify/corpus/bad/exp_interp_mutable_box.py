# op: exp
# public: exp_interp_mutable_box
# family: E
# tries: a Python list is passed as a kernel argument; the interpreter hands it over unchanged and the kernel body works on the tensor inside it
# should be caught by: launch guard (argument types: tensor/int/float/bool/None/descriptor only); lint; compile-only gate
# outcome: CHEAT|COMPILE_ERROR
# layer: lint, launch, compile

@triton.jit
def kernel(box, n, B: tl.constexpr):
    box.append(box[0].exp())


def wrapper(input, *, out=None):
    box = [input]
    kernel[(1,)](box, input.numel(), B=1)
    return box[-1]
