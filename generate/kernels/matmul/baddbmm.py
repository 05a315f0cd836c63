"""aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor

self is broadcast through stride 0. It is not read if beta is 0. The matrices are not read if alpha is 0.
"""

import torch
from blocks.matmul import launch_matmul, matmul_tile, without_terms
from blocks.number_range import without_overflow
from blocks.product_tiles import SCALAR_TILE

OVERLOADS = ("aten::baddbmm",)
DTYPES = ("bfloat16", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8")


def wrapper(self, batch1, batch2, *, beta=1, alpha=1):
    if self.dtype == torch.bool:
        raise RuntimeError(f"baddbmm does not support {self.dtype}")
    if not self.dtype.is_floating_point:
        without_overflow(self.dtype, beta, alpha)
    if alpha == 0:
        batch1, batch2 = without_terms(batch1, batch2)
    (B, M, K), N = batch1.shape, batch2.shape[2]
    if batch2.shape[:2] != (B, K):
        raise RuntimeError(f"cannot multiply {tuple(batch1.shape)} by {tuple(batch2.shape)}")
    out = torch.empty((B, M, N), dtype=batch1.dtype, device=batch1.device)
    bias = None if beta == 0 else self.expand(B, M, N)
    half = batch1.dtype in (torch.float16, torch.bfloat16)
    tile = SCALAR_TILE
    if half or batch1.dtype == torch.float32:
        tile = matmul_tile(B, M, N, K, half, (128, 128) if half else (64, 64))
    numbers = beta, alpha if K else 0  # an empty sum stays 0, even if alpha is infinite
    if out.numel():
        launch_matmul(batch1, batch2, bias, out, numbers, tile)
    return out
