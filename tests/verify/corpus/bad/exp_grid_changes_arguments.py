# op: exp
# name: exp_grid_changes_arguments
# family: E
# tries: the grid function changes the arguments of the launch, which only the interpreter passes on
# should be caught by: grid functions that are given copies
# outcome: WRONG
# layer: compare

@triton.jit
def kernel(x_ptr, o_ptr, n, TWICE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.exp(x * TWICE), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[lambda meta: (meta.update({"TWICE": 1}) or triton.cdiv(n, 1024),)](x, o, n, TWICE=2, BLOCK=1024)
    return o
