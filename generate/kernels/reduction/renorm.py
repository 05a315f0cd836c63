"""aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor

Slices along dim whose p-norm exceeds maxnorm are multiplied by maxnorm / (norm + 1e-7).
"""

import torch
import triton
import triton.language as tl
from blocks.arithmetic import divide
from blocks.elementwise import elementwise
from blocks.norms import norm_of_order
from blocks.reduction import reduce

OVERLOADS = ("aten::renorm",)
DTYPES = ("bfloat16", "float16", "float32", "float64")


@triton.jit
def shortened(x, norm, most):
    return tl.where(norm > most, x * divide(most + tl.zeros_like(norm), norm + 1e-7), x)


def wrapper(self, p, dim, maxnorm):
    if not self.dtype.is_floating_point:
        raise NotImplementedError(f"norms do not support {self.dtype}")
    if self.dim() < 2 or not p > 0 or not maxnorm >= 0:
        raise RuntimeError(
            f"renorm needs two dimensions, p > 0 and maxnorm >= 0, got {tuple(self.shape)}, {p} and {maxnorm}"
        )
    kept_dim = range(self.dim())[dim]
    wide = torch.float64 if self.dtype == torch.float64 else torch.float32
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    if self.numel() == 0:
        return out
    kind, map, finish, numbers, value = norm_of_order(p)
    value = torch.float64 if wide == torch.float64 else value
    options = {
        "dtype": wide,
        "common": wide,
        "map": map,
        "finish": finish,
        "numbers": numbers,
        "values": (value,),
    }
    norm = reduce(kind, [self], [d for d in range(self.dim()) if d != kept_dim], True, **options)
    return elementwise(shortened, self, norm, numbers=(maxnorm,), common=wide, out=out)
