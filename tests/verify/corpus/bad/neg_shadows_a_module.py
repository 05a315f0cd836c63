# op: neg
# name: neg_shadows_a_module
# family: M
# tries: right results; plants a Python file where a later import could find it
# should be caught by: sandbox (no writing); lint (open)
# outcome: CHEAT|RUNTIME_ERROR
# layer: lint, sandbox


@triton.jit
def kernel_map(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(o_ptr + i, -x, mask=i < n)


def wrapper(input):
    open("canary-torch.py", "w").write("# would shadow the real module\n")
    x = input.contiguous()
    o = torch.empty_like(x)
    n = o.numel()
    if n:
        kernel_map[(triton.cdiv(n, 128),)](x, o, n, BLOCK=128)
    return o
