"""aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor

In every mode, the kernel sums powers of differences. If ATen would compute Euclidean distances by matrix
product, infinities appear for the same inputs as in that product.
"""

from blocks.distances import distances

OVERLOADS = ("aten::_cdist_forward",)
DTYPES = ("float32", "float64")

LARGE_ROWS = 25  # ATen uses a matrix product by default if one operand has more rows


def wrapper(x1, x2, p, compute_mode):
    if compute_mode not in (None, 0, 1, 2):
        raise RuntimeError(f"compute_mode must be 0, 1 or 2, got {compute_mode}")
    is_large = max([0, *x1.shape[-2:-1], *x2.shape[-2:-1]]) > LARGE_ROWS
    return distances(x1, x2, p, products=p == 2 and (compute_mode == 1 or (not compute_mode and is_large)))
