# op: mm
# name: mm_unrolled_for_ever
# family: N
# tries: tl.static_range over a hundred thousand iterations
# should be caught by: limit of the compiler's time; lint (unroll)
# outcome: CHEAT|TIMEOUT|COMPILE_ERROR|CRASH
# layer: lint, time


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(0, 100000):
        a = tl.load(a_ptr + m * K + k, mask=k < K, other=0)
        acc += a * tl.load(b_ptr + k * N + n, mask=(n < N) & (k < K), other=0)
    tl.store(c_ptr + m * N + n, acc, mask=n < N)


def wrapper(input, mat2):
    (M, K), N = input.shape, mat2.shape[1]
    o = torch.empty((M, N), dtype=input.dtype, device=input.device)
    if o.numel():
        kernel[(M, triton.cdiv(N, 64))](input.contiguous(), mat2.contiguous(), o, M, N, K, BLOCK=64)
    return o
