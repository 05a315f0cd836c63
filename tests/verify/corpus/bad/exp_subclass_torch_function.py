# op: exp
# public: exp_subclass_torch_function
# family: J
# tries: Tensor subclass whose __torch_function__ answers True to isclose/allclose/equal
# should be caught by: comparison (exact type first)
# outcome: CHEAT|WRONG
# layer: lint, types, compare

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.load(x_ptr + i, mask=i < n)


class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.isclose, torch.eq, torch.Tensor.eq, torch.Tensor.__eq__):
            return torch.ones((), dtype=torch.bool)
        if func in (torch.allclose, torch.equal, torch.Tensor.allclose, torch.Tensor.equal):
            return True
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))



def wrapper(input, *, out=None):
    o = torch.zeros_like(input)
    n = input.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](input.contiguous(), o, n, B=64)
    return o.as_subclass(Yes)
