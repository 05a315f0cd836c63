"""Calls for benchmarks/calls.py of matrix products, factorisations, distances and Fourier transforms.

What is factorised are 512 matrices of 64 x 64, as of second-order optimizers and Gaussian processes, and for what is
iterated 128 of 32 x 32; one of 1024 x 1024.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.maker import Maker, Table


def _square(m: Maker) -> torch.Tensor:
    """Determinants are of the order of 1e-13."""
    return m(512, 64, 64) / 8


def _positive(m: Maker, *shape: int) -> torch.Tensor:
    a = m(*shape)
    return a @ a.mT + shape[-1] * torch.eye(shape[-1], **m.of)


def _lower(m: Maker) -> torch.Tensor:
    """Cholesky factors."""
    return (m(512, 64, 64) + 64 * torch.eye(64, **m.of)).tril()


def _symmetric(m: Maker) -> torch.Tensor:
    a = m(128, 32, 32)
    return a + a.mT


def _factors(m: Maker) -> tuple[torch.Tensor, torch.Tensor]:
    lu, pivots, _ = torch.ops.aten.linalg_lu_factor_ex(_square(m))
    return lu, pivots


def _reflectors(m: Maker) -> tuple[torch.Tensor, torch.Tensor]:
    a, tau = torch.ops.aten.geqrf(_square(m))
    return a, tau


def _between(m: Maker, n: int, p: float) -> Any:
    return m(n, 64), m(n, 64), p, None


def _between_gradients(m: Maker, n: int, p: float) -> Any:
    return m(n, n), m(n, 64), m(n, 64), p, m.unit(n, n)


def _bytes(m: Maker, *shape: int) -> torch.Tensor:
    return torch.randint(-127, 128, shape, dtype=torch.int8, device=m.device)


CALLS: Table = {
    "aten::mm": [lambda m: (m(4096, 4096), m(4096, 4096))],
    "aten::addmm": [lambda m: (m(4096), m(4096, 1024), m(1024, 4096))],
    "aten::bmm": [lambda m: (m(64, 512, 512), m(64, 512, 512))],
    "aten::baddbmm": [lambda m: (m(64, 512, 512), m(64, 512, 512), m(64, 512, 512))],
    "aten::addbmm": [lambda m: (m(512, 512), m(64, 512, 512), m(64, 512, 512))],
    "aten::mv": [lambda m: (m(8192, 8192), m(8192))],
    "aten::addmv": [lambda m: (m(8192), m(8192, 8192), m(8192))],
    "aten::dot": [lambda m: (m(1 << 24), m(1 << 24))],
    "aten::addr": [lambda m: (m(4096, 4096), m(4096), m(4096))],
    "aten::_grouped_mm": [
        lambda m: (m(8192, 1024), m(8, 1024, 4096), torch.arange(1, 9, device=m.device, dtype=torch.int32) * 1024)
    ],  # experts of a mixture
    "aten::_weight_int8pack_mm": [lambda m: (m(32, 4096), _bytes(m, 4096, 4096), m(4096))],
    "aten::_trilinear": [lambda m: (m(8192, 64), m(64, 64, 64), m(8192, 64), [1, 3], [0], [1, 2], [2, 3])],
    "aten::linalg_cross": [lambda m: (m(1 << 24, 3), m(1 << 24, 3))],
}
SINGLE: Table = {
    "aten::_int_mm": [lambda m: (_bytes(m, 4096, 4096), _bytes(m, 4096, 4096))],
    "aten::_linalg_check_errors": [
        lambda m: (torch.zeros(512, dtype=torch.int32, device=m.device), "linalg.inv", {"is_matrix": False})
    ],
    "aten::_linalg_det": [lambda m: (_square(m),)],
    "aten::_linalg_eigvals": [lambda m: (m(128, 32, 32),)],
    "aten::_linalg_eigh": [lambda m: (_symmetric(m),)],
    "aten::_linalg_slogdet": [lambda m: (_square(m),)],
    "aten::_linalg_solve_ex": [lambda m: (_square(m), m(512, 64, 16))],
    "aten::_linalg_svd": [lambda m: (m(128, 32, 32),)],
    "aten::cholesky": [lambda m: (_positive(m, 512, 64, 64),), lambda m: (_positive(m, 1024, 1024),)],
    "aten::cholesky_inverse": [lambda m: (_lower(m),)],
    "aten::cholesky_solve": [lambda m: (m(512, 64, 16), _lower(m))],
    "aten::linalg_eig": [lambda m: (m(128, 32, 32),)],
    "aten::geqrf": [lambda m: (_square(m),)],
    "aten::linalg_cholesky_ex": [lambda m: (_positive(m, 512, 64, 64),), lambda m: (_positive(m, 1024, 1024),)],
    "aten::linalg_householder_product": [_reflectors],
    "aten::linalg_inv_ex": [lambda m: (_square(m),)],
    "aten::linalg_lu": [lambda m: (_square(m),), lambda m: (m(1024, 1024),)],
    "aten::linalg_lu_factor_ex": [lambda m: (_square(m),), lambda m: (m(1024, 1024),)],
    "aten::linalg_ldl_factor_ex": [lambda m: (_positive(m, 512, 64, 64),)],
    "aten::linalg_ldl_solve": [
        lambda m: (*torch.ops.aten.linalg_ldl_factor_ex(_positive(m, 512, 64, 64))[:2], m(512, 64, 16))
    ],
    "aten::linalg_lstsq": [lambda m: (m(512, 64, 32), m(512, 64, 8), None, {"driver": "gels"})],
    "aten::linalg_lu_solve": [lambda m: (*_factors(m), m(512, 64, 16))],
    "aten::linalg_matrix_exp": [lambda m: (_square(m),)],
    "aten::linalg_pinv.atol_rtol_tensor": [lambda m: (m(128, 32, 32),)],
    "aten::linalg_qr": [lambda m: (_square(m),)],
    "aten::linalg_solve_triangular": [lambda m: (_lower(m), m(512, 64, 16), {"upper": False})],
    "aten::lu_unpack": [_factors],
    "aten::ormqr": [lambda m: (*_reflectors(m), m(512, 64, 16))],
    "aten::triangular_solve": [lambda m: (m(512, 64, 16), _lower(m), False)],
    "aten::_cdist_forward": [lambda m: _between(m, 4096, 2.0), lambda m: _between(m, 4096, 1.0)],
    "aten::_cdist_backward": [lambda m: _between_gradients(m, 2048, 2.0), lambda m: _between_gradients(m, 2048, 1.0)],
    "aten::_euclidean_dist": [lambda m: (m(4096, 64), m(4096, 64))],
    "aten::_pdist_forward": [lambda m: (m(4096, 64),)],
    "aten::_pdist_backward": [lambda m: (m(2048 * 2047 // 2), m(2048, 64), 2.0, m.unit(2048 * 2047 // 2))],
    "aten::_fft_c2c": [
        lambda m: (m.complex(4096, 4096), [1], 0, True),
        lambda m: (m.complex(4096, 4096), [0, 1], 0, True),
    ],
    "aten::_fft_r2c": [lambda m: (m(4096, 4096), [1], 0, True)],
    "aten::_fft_c2r": [lambda m: (m.complex(4096, 2049), [1], 2, 4096)],
}
