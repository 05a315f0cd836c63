"""aten::repeat(Tensor self, SymInt[] repeats) -> Tensor"""

import torch
from blocks.creation import fill

OVERLOADS = ("aten::repeat",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, repeats):
    new_dims = len(repeats) - self.dim()
    if new_dims < 0 or any([r < 0 for r in repeats]):
        raise RuntimeError(f"repeats {list(repeats)} do not fit {self.dim()} dimensions")
    size = [1] * new_dims + list(self.shape)
    shape = [r * n for r, n in zip(repeats, size, strict=True)]
    out = torch.empty(shape, dtype=self.dtype, device=self.device)
    split_shape = [v for pair in zip(repeats, size, strict=True) for v in pair]
    x = self
    for d in range(self.dim()):
        x = x.unsqueeze(2 * d)
    if out.numel():
        fill(out.view(split_shape), x.expand(split_shape))
    return out
