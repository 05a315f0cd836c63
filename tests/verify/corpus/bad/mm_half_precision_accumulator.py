# op: mm
# name: mm_half_precision_accumulator
# family: S
# tries: products are added in float16
# should be caught by: tolerance by dtype and reduction length
# outcome: WRONG
# layer: compare


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float16)
    for k in range(K):
        product = tl.load(a_ptr + m * K + k) * tl.load(b_ptr + k * N + n, mask=n < N, other=0)
        acc += product.to(tl.float16)
    tl.store(c_ptr + m * N + n, acc.to(c_ptr.dtype.element_ty), mask=n < N)


def wrapper(input, mat2):
    (M, K), N = input.shape, mat2.shape[1]
    o = torch.empty((M, N), dtype=input.dtype, device=input.device)
    if o.numel():
        kernel[(M, triton.cdiv(N, 32))](input.contiguous(), mat2.contiguous(), o, M, N, K, BLOCK=32)
    return o
