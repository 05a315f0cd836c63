# op: exp
# name: exp_grid_function_takes_a_flag_away
# family: E
# tries: a named grid function pops what the kernel was to be given
# should be caught by: grid functions that are given copies
# outcome: WRONG
# layer: compare

@triton.jit
def kernel(x_ptr, o_ptr, n, TWICE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n) * TWICE), mask=i < n)


def wrapper(self):
    x = self.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        def grid(meta):
            return (triton.cdiv(n, 1024) + 0 * meta.pop("TWICE") + 0 * len([meta.update({"TWICE": 1})]),)
        
        kernel[grid](x, o, n, TWICE=2, BLOCK=1024)
    return o
