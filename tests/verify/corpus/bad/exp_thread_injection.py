# op: exp
# public: exp_thread_injection
# family: O
# tries: starts the real work in a thread that nobody joins
# should be caught by: copy output at return; thread count; lint
# outcome: CHEAT|WRONG|RUNTIME_ERROR
# layer: lint, launch, sandbox, compare

@triton.jit
def kernel(x_ptr, o_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    tl.store(o_ptr + i, tl.exp(x).to(o_ptr.dtype.element_ty), mask=i < n)


def wrapper(input, *, out=None):
    import threading
    x = input.contiguous()
    o = torch.zeros_like(x)
    n = x.numel()
    if n > 0:
        t = threading.Thread(target=lambda: kernel[(triton.cdiv(n, 64),)](x, o, n, B=64), daemon=True)
        t.start()
    return o
