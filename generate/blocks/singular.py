"""Singular values and vectors, and eigenvalues and eigenvectors of symmetric matrices."""

import torch
import triton
import triton.language as tl
from blocks.elementwise import elementwise
from blocks.householder import reflected, reflectors
from blocks.jacobi import jacobi
from blocks.substitution import column_major, square_rows


@triton.jit
def with_sign_of(x, y):
    return tl.where(y < 0, -x, x)


def singular(A, full, wanted, name):
    """(U, singular values in descending order, Vh). full: of all columns and rows. Where U and Vh are not wanted they
    are empty.

    Columns that are small beside the largest one, or zero, leave directions of U open: it comes of reflections of U S,
    whose R is S but for signs.
    """
    if A.dim() < 2 or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"{name}: {tuple(A.shape)} of {A.dtype}")
    m, n = A.shape[-2:]
    tall = m >= n
    values, scaled, vectors = jacobi(A if tall else A.mT, False, wanted)
    if not wanted:
        none = [torch.empty(0, dtype=A.dtype, device=A.device) for _ in range(2)]
        return none[0], values, none[1]
    u = column_major((*A.shape[:-2], m, m if full else min(m, n)), A)
    vh = column_major((*A.shape[:-2], n if full else min(m, n), n), A)
    v, tau = reflectors(scaled, name)
    reflected(v, tau, None, u if tall else vh.mT, False)
    diagonal = v.diagonal(0, -2, -1).unsqueeze(-2).expand(vectors.shape)
    elementwise(with_sign_of, vectors, diagonal, out=vh.mT if tall else u)
    return u, values, vh


def eigen(A, upper, wanted, name):
    """(eigenvalues in ascending order, eigenvectors as columns, or an empty tensor where they are not wanted) of the
    symmetric matrices of which one triangle is given."""
    square_rows(A, name)
    values, _, vectors = jacobi(A.mT if upper else A, True, wanted)
    return values, vectors if wanted else torch.empty(0, dtype=A.dtype, device=A.device)
