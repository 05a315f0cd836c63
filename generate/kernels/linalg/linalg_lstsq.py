"""aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution,
    Tensor residuals, Tensor rank, Tensor singular_values)

`driver` names a LAPACK algorithm. It decides which results are computed, and which singular values count:

- A singular value counts if it exceeds rcond times the largest one. The default for rcond is max(rows,
  columns) times the dtype's epsilon.
- "gels" counts all of them.
- "gelsd" uses epsilon / 2 if rcond is not between 0 and 1, and "gelss" if rcond is negative.

Residuals are only returned if there are more rows than columns and all singular values count.
"""

import torch
from blocks.arithmetic import square
from blocks.elementwise import elementwise
from blocks.jacobi import jacobi
from blocks.least_squares import one_if_positive, residual_squares, scaled_by
from blocks.pseudoinverse import inverse_above, weighted_product
from blocks.reduction import reduce
from blocks.substitution import column_major
from blocks.truth import truth
from blocks.types import identical_dtypes

OVERLOADS = ("aten::linalg_lstsq",)
DTYPES = ("float32", "float64")


def share_of_largest(rcond, driver, step, size):
    """Return the fraction of the largest singular value that a value has to exceed to count."""
    if driver == "gels":
        return 0.0
    if rcond is None:
        return step * size
    if driver == "gelsy":  # below 1, so that the largest value always counts
        return min(max(rcond, 0.0), 1 - step)
    outside = rcond <= 0 or rcond >= 1 if driver == "gelsd" else rcond < 0
    return step / 2 if outside else rcond


def reciprocals(values, share):
    """Return 1 / value for the values that count, and 0 for the others."""
    if not values.numel():
        return values
    first, last = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
    return elementwise(inverse_above, values, first, last, 0.0, share, dtype=values.dtype)


def wrapper(self, b, rcond=None, *, driver=None):
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsd", "gelss", "gelsy"):
        raise RuntimeError(f"linalg.lstsq: driver must be gels, gelsd, gelss or gelsy, got {driver}")
    identical_dtypes(self, b)
    vector = b.dim() == self.dim() - 1 and b.shape == self.shape[:-1]
    b = b.unsqueeze(-1) if vector else b
    if self.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"linalg.lstsq: matrices must be float32 or float64, got {self.dtype}")
    if self.dim() < 2 or b.dim() != self.dim() or b.shape[-2] != self.shape[-2]:
        raise RuntimeError(f"linalg.lstsq: matrix {tuple(self.shape)} and right-hand side {tuple(b.shape)} do not fit")
    (m, n), count = self.shape[-2:], b.shape[-1]
    if not count and driver in ("gelsd", "gelss"):
        raise RuntimeError(f"linalg.lstsq: driver {driver} needs at least one right-hand side")
    values, scaled, vectors = jacobi(self if m >= n else self.mT, False, True)
    left, right = (vectors, scaled) if m >= n else (scaled, vectors)
    weights = reciprocals(values, share_of_largest(rcond, driver, torch.finfo(self.dtype).eps, max(m, n)))
    batch = torch.broadcast_shapes(self.shape[:-2], b.shape[:-2])
    a, b, left, right = [x.expand((*batch, *x.shape[-2:])) for x in (self, b, left, right)]
    options = {"dtype": self.dtype, "device": self.device}
    projected = weighted_product(right.mT, None, b, torch.empty((*batch, min(m, n), count), **options))
    squares = reduce("sum", [scaled], [-2], dtype=self.dtype, map=square)
    elementwise(scaled_by, projected, weights.unsqueeze(-1), squares.unsqueeze(-1), out=projected)
    solution = column_major((*batch, max(m, n), count), b).narrow(-2, 0, n)
    weighted_product(left, None, projected, solution)
    residuals, rank = torch.empty(0, **options), torch.empty(0, dtype=torch.int64, device=self.device)
    if m > n and driver != "gelsy" and (driver == "gels" or truth("min", weights, None, False).item()):
        residuals = residual_squares(a, solution, b, torch.empty((*batch, count), **options))
    if driver != "gels":
        counted = weights if count else weights.narrow(-1, 0, 0)
        rank = reduce(
            "sum", [counted], [-1], dtype=torch.int64, map=one_if_positive, common=self.dtype, values=(torch.int64,)
        )
    solution = solution.squeeze(-1) if vector else solution
    return solution, residuals, rank, values if driver in ("gelsd", "gelss") else torch.empty(0, **options)
