"""aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"""

import torch
from blocks.creation import fill
from blocks.joining import common_format
from blocks.pixel_shuffle import shuffle_pixels

OVERLOADS = ("aten::pixel_shuffle",)
DTYPES = ("bfloat16", "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, upscale_factor):
    r = upscale_factor
    if self.dim() < 3 or r < 1 or self.shape[-3] % (r * r):
        raise RuntimeError(
            f"pixel_shuffle needs [..., C, H, W] with channels that {r} * {r} divides, got {tuple(self.shape)}"
        )
    channels, rows, columns = self.shape[-3:]
    shape = (*self.shape[:-3], channels // (r * r), rows * r, columns * r)
    out = torch.empty(shape, dtype=self.dtype, device=self.device, memory_format=common_format([self]))
    if out.numel() and not shuffle_pixels(self, out, rows, columns, r, False):
        target = out.unflatten(-1, (columns, r)).unflatten(-3, (rows, r))  # channel, row, i, column, j
        x = self.unflatten(-3, (channels // (r * r), r, r))  # channel, i, j, row, column
        fill(target, x.movedim((-2, -4, -1, -3), (-4, -3, -2, -1)))
    return out
