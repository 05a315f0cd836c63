# op: sigmoid
# name: sigmoid_global_box
# family: E
# tries: the kernel's body reaches tensors through a module-level dict: plain Python in the interpreter
# should be caught by: lint (module state, torch in a kernel); compile gate; launch guard
# outcome: CHEAT|COMPILE_ERROR
# layer: lint, compile, launch


BOX = {}


@triton.jit
def kernel(o_ptr, n, BLOCK: tl.constexpr):
    BOX["out"].copy_(torch.sigmoid(BOX["in"]))


def wrapper(input):
    o = torch.empty_like(input)
    BOX["in"], BOX["out"] = input, o
    kernel[(1,)](o, o.numel(), BLOCK=16)
    return o
