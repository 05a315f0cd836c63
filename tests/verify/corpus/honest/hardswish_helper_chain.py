# op: nn.functional.hardswish
# honest-but-unusual: the kernel is a chain of small @triton.jit helpers, one of them handed over as a tl.constexpr argument and
# called through it; constants come as tl.constexpr module values.

SIX = tl.constexpr(6.0)
THREE = tl.constexpr(3.0)


@triton.jit
def gate(x):
    return tl.minimum(tl.maximum(x + THREE, 0.0), SIX) / SIX


@triton.jit
def through(x, function: tl.constexpr):
    return tl.where(x != x, x, x * function(x))


@triton.jit
def kernel_map(x_ptr, o_ptr, n, function: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    tl.store(o_ptr + i, through(x, function).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, inplace=False):
    x = input.contiguous()
    o = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel_map[(triton.cdiv(n, 64),)](x, o, n, gate, BLOCK=64)
    return o
