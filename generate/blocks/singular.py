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
    """Return (U, singular values in descending order, Vh).

    Columns that are zero, or small beside the largest one, leave directions in U open. So U comes from the
    reflections of U S, whose R is S except for signs.

    Args:
        A: [..., m, n] tensor, fp32 or fp64.
        full: Return all columns in U and all rows in Vh.
        wanted: Compute U and Vh; they are empty otherwise.
        name: Operator name for error messages.

    Raises:
        RuntimeError: If A is not a matrix in fp32 or fp64.
    """
    if A.dim() < 2 or A.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"{name}: expected float32 or float64 matrices, got {tuple(A.shape)} {A.dtype}")
    m, n = A.shape[-2:]
    tall = m >= n
    values, scaled, vectors = jacobi(A if tall else A.mT, False, wanted)
    if not wanted:
        empty = [torch.empty(0, dtype=A.dtype, device=A.device) for _ in range(2)]
        return empty[0], values, empty[1]
    u = column_major((*A.shape[:-2], m, m if full else min(m, n)), A)
    vh = column_major((*A.shape[:-2], n if full else min(m, n), n), A)
    # scaled = U S, so its R differs from S in signs alone, which move to the vectors
    v, tau = reflectors(scaled, name)
    reflected(v, tau, None, u if tall else vh.mT, False)
    diagonal = v.diagonal(0, -2, -1).unsqueeze(-2).expand(vectors.shape)
    elementwise(with_sign_of, vectors, diagonal, out=vh.mT if tall else u)
    return u, values, vh


def eigen(A, upper, wanted, name):
    """Return (eigenvalues in ascending order, eigenvectors as columns) of symmetric matrices.

    Only the upper or the lower triangle is read. The vectors are an empty tensor if they are not wanted.
    """
    square_rows(A, name)
    values, _, vectors = jacobi(A.mT if upper else A, True, wanted)
    return values, vectors if wanted else torch.empty(0, dtype=A.dtype, device=A.device)
