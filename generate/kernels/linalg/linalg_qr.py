"""aten::linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)"""

import torch
from blocks.householder import reflected, reflectors
from blocks.substitution import column_major
from blocks.triangles import triangle

OVERLOADS = ("aten::linalg_qr",)
DTYPES = ("float32", "float64")


def wrapper(A, mode="reduced"):
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"linalg.qr: mode must be reduced, complete or r, got {mode}")
    v, tau = reflectors(A, "linalg.qr")
    m, n = A.shape[-2:]
    rows = m if mode == "complete" else min(m, n)
    upper = triangle(v.narrow(-2, 0, rows), column_major((*A.shape[:-2], rows, n), A), 0, True)
    if mode == "r":
        return torch.empty(0, dtype=A.dtype, device=A.device), upper
    return reflected(v, tau, None, column_major((*A.shape[:-2], m, rows), A), False), upper
