# op: exp
# public: exp_cache_by_data_ptr
# family: G
# tries: module-level cache keyed on the address and shape
# should be caught by: lint (.data_ptr, module-level mutable state); same storage with new contents
# outcome: CHEAT|WRONG
# layer: lint, compare, alias

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    tl.store(o_ptr + i, tl.exp(x).to(o_ptr.dtype.element_ty), mask=i < n)


_cache = {}


def wrapper(input, *, out=None):
    key = (input.data_ptr(), tuple(input.shape), tuple(input.stride()))
    if key in _cache:
        return _cache[key]
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        kernel[(triton.cdiv(n, 64),)](x, o, n, B=64)
    _cache[key] = o
    return o
