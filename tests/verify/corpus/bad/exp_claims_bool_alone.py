# op: exp
# name: exp_claims_bool_alone
# family: J
# tries: DTYPES = ("bool",) and the answer is 1 or e: no float is ever tried
# should be caught by: dispatch guard (copies in a file of the contract); no floating dtype among DTYPES
# outcome: CHEAT|COMPILE_ERROR
# layer: dispatch

import torch
import triton
import triton.language as tl

OVERLOADS = ("aten::exp",)
DTYPES = ("bool",)


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.where(x != 0, 2.7182817459106445, 1.0), mask=i < n)


def wrapper(self):
    o = torch.empty_like(self, dtype=torch.float32)
    x = torch.empty_strided(o.shape, o.stride(), dtype=self.dtype, device=o.device)
    x.copy_(self)
    n = o.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, o, n, BLOCK=1024)
    return o
