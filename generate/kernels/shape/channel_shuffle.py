"""aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor"""

import torch
from blocks.creation import fill
from blocks.joining import common_format

OVERLOADS = ("aten::channel_shuffle",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, groups):
    if self.dim() < 3 or groups < 1 or self.shape[1] % groups:
        raise RuntimeError(f"channels in {tuple(self.shape)} cannot be split into {groups} groups")
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device, memory_format=common_format([self]))
    if out.numel():
        size = self.shape[1] // groups
        fill(out.unflatten(1, (size, groups)), self.unflatten(1, (groups, size)).transpose(1, 2))
    return out
