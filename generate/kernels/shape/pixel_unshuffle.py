"""aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"""

import torch
from blocks.creation import fill
from blocks.joining import common_format
from blocks.pixel_shuffle import shuffle_pixels

OVERLOADS = ("aten::pixel_unshuffle",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, downscale_factor):
    r = downscale_factor
    if self.dim() < 3 or r < 1 or self.shape[-1] % r or self.shape[-2] % r:
        raise RuntimeError(
            f"pixel_unshuffle needs [..., C, H, W] with a height and width that {r} divides, got {tuple(self.shape)}"
        )
    channels, rows, columns = self.shape[-3], self.shape[-2] // r, self.shape[-1] // r
    shape = (*self.shape[:-3], channels * r * r, rows, columns)
    out = torch.empty(shape, dtype=self.dtype, device=self.device, memory_format=common_format([self]))
    if out.numel() and not shuffle_pixels(self, out, rows, columns, r, True):
        target = out.unflatten(-3, (channels, r, r))  # channel, i, j, row, column
        x = self.unflatten(-1, (columns, r)).unflatten(-3, (rows, r))  # channel, row, i, column, j
        fill(target, x.movedim((-3, -1, -4, -2), (-4, -3, -2, -1)))
    return out
