"""Compare matrix factors, whose definition leaves some choices open.

Open are the signs of vectors, and the basis of a space that belongs to equal values. For nonsymmetric matrices,
the order of values and the phases of vectors are open, too.
So the elements of such tensors are not compared, but their defining properties: the product of all factors is the
matrix, and the products of the vectors with each other are the identity (Golub and Van Loan, Matrix Computations,
2013, theorems 2.4.1 and 8.1.1). Ordered values are compared directly. The product uses the reference's values,
since an answer's own may exceed the range of their dtype.
Unordered values are compared with the nearest value of the reference. Their vectors have length 1 and are checked
by their products with the matrix. They also have to be about as independent as the reference's vectors, unless
those are nearly dependent.

Partial pivoting takes the largest element in a column. If two are equal up to their roundings, either may be taken,
and all later factors differ. Such factors are right if their product is the matrix, and if no multiplier exceeds 1
(ibid., section 3.4.1).

A column that depends on the columns before it leaves only roundings to reflect, so its reflection is open. Such
factors are right if Q is orthonormal, R is triangular, and QR is the matrix (ibid., section 5.2.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from traces.values import Packed
from verify.cases.case import Expected
from verify.cases.packed import contents, tensor_names
from verify.comparison.tolerance import ATENS, FACTOR_ROUNDINGS, MOST_NUDGED, unit

Arguments = Mapping[str, Any]
Product = Callable[[Tensor, Sequence[Tensor]], Tensor]


@dataclass(frozen=True)
class _Factored:
    """Factorisation computed by an overload.

    Attributes:
        results: Result names.
        values: Index for the result with the values, whose largest is the scale for errors.
        matrix: Function that returns the factored matrix.
        product: Function that multiplies the results, with given values.
        vectors: Results with an orthonormal set, and the dimension along which it is indexed.
    """

    results: tuple[str, ...]
    values: int
    matrix: Callable[[Tensor, Arguments], Tensor]
    product: Product
    vectors: Mapping[int, int]


def _symmetric(a: Tensor, arguments: Arguments) -> Tensor:
    """Return the symmetric matrix that one triangle defines."""
    triangle = a.triu() if str(arguments["UPLO"]).upper() == "U" else a.tril()
    return triangle + (triangle - torch.diag_embed(triangle.diagonal(dim1=-2, dim2=-1))).mT


def _spectral(values: Tensor, results: Sequence[Tensor]) -> Tensor:
    return (results[1] * values.unsqueeze(-2)) @ results[1].mT


def _singular(values: Tensor, results: Sequence[Tensor]) -> Tensor:
    u, _, vh = results
    count = values.shape[-1]
    return (u[..., :count] * values.unsqueeze(-2)) @ vh[..., :count, :]


_FACTORED = {
    "_linalg_eigh": _Factored(("eigenvalues", "eigenvectors"), 0, _symmetric, _spectral, {1: -1}),
    "_linalg_svd": _Factored(("U", "S", "Vh"), 1, lambda a, arguments: a, _singular, {0: -1, 2: -2}),
}
_GENERAL = _Factored(("eigenvalues", "eigenvectors"), 0, lambda a, arguments: a, _spectral, {1: -1})
_UNORDERED = {"linalg_eig": ("eigenvalues", "return[0]"), "linalg_eigvals": ("out", "return")}  # names of the values
_PIVOTED = {  # names of all results; pivots are P in the form of row exchanges
    "linalg_lu": ("P", "L", "U"),
    "linalg_lu_factor_ex": ("LU", "pivots", "info"),
    "linalg_solve_ex": ("result", "LU", "pivots", "info"),
    "linalg_det": ("result", "LU", "pivots"),
    "linalg_slogdet": ("sign", "logabsdet", "LU", "pivots"),
}
_ORTHOGONAL = {"geqrf": ("a", "tau"), "linalg_qr": ("Q", "R")}
DEPENDENT = 2.0**-10  # fraction of the reference's least singular value below which vectors count as dependent
HARDLY = 16  # multiple of the root of a rounding; less independent eigenvectors change with the roundings


def aligned(overload: str, expected: Expected, answer: Packed, index: int) -> Tensor:
    """Return an answer's tensor `index`, with unordered values permuted to match the nearest reference values."""
    values = contents(answer, index)
    names = _UNORDERED.get(_base(overload).removeprefix("_"), ())
    if tensor_names(answer.tree)[index] not in names or answer is expected.values:
        return values
    exact = contents(expected.values, index)
    if not values.numel() or values.shape != exact.shape:
        return values
    pairs = zip(values.view(-1, values.shape[-1]), exact.view(-1, exact.shape[-1]), strict=True)
    return torch.stack([v[_nearest(v, e)] for v, e in pairs]).view(values.shape)


def _nearest(values: Tensor, exact: Tensor) -> Tensor:
    """Return the index of the value that belongs to each reference value, by repeated nearest pairs."""
    distance = (values.to(torch.complex128)[None, :] - exact.to(torch.complex128)[:, None]).abs()
    distance = distance.nan_to_num(torch.finfo(torch.float64).max)
    matches = torch.zeros(len(exact), dtype=torch.int64)
    for _ in range(len(exact)):
        row, column = divmod(int(distance.argmin()), len(values))
        matches[row] = column
        distance[row, :] = distance[:, column] = torch.inf
    return matches


def _base(overload: str) -> str:
    return overload.removeprefix("aten::").partition(".")[0]


def _of_general(expected: Expected, answer: Packed, index: int) -> tuple[Tensor, Tensor] | None:
    """Return the compared quantities for a general matrix's eigenvectors, and their expected values.

    They are A V - V diag(values) relative to the norm of A, the squared lengths, and a flag for vectors that are
    dependent although the reference's are not.
    """
    positions = _places(_GENERAL, answer)
    if index not in positions[1]:
        return None
    values, vectors = (contents(answer, i).to(torch.complex128) for i in (positions[0][0], index))
    exact = contents(expected.values, _places(_GENERAL, expected.values)[1][-1]).to(torch.complex128)
    a = contents(expected.before, 0).to(torch.complex128)
    size = torch.linalg.matrix_norm(a)[..., None, None]
    size = torch.where(size > 0, size, torch.ones_like(size))
    rest = (a / size) @ vectors - vectors * (values.unsqueeze(-2) / size)
    dtype = contents(expected.native, index).dtype.to_real()
    least = [torch.linalg.svdvals(v.nan_to_num()).amin(-1, keepdim=True) for v in (vectors, exact) if v.numel()]
    dependent = [
        (s < DEPENDENT * r) & (r > HARDLY * unit(dtype) ** 0.5) for s, r in zip(least[:1], least[1:], strict=True)
    ]
    lengths = vectors.abs().square().sum(-2)
    parts = [torch.view_as_real(rest).flatten(-3), lengths, *[d.double() for d in dependent]]
    wanted = [torch.zeros_like(parts[0]), torch.ones_like(lengths), *[torch.zeros_like(d) for d in parts[2:]]]
    return torch.cat(parts, -1), torch.cat(wanted, -1)


def compared(overload: str, expected: Expected, answer: Packed, index: int) -> tuple[Tensor, Tensor] | None:
    """Return the quantity that is compared in place of tensor `index`, and its expected value; None for others.

    Both are flat and float64: the product of the factors divided by their largest value, then the products of the
    vectors with each other.
    """
    if _base(overload) == "linalg_eig":
        return _of_general(expected, answer, index)
    factored = _FACTORED.get(_base(overload))
    if factored is None:
        return None
    positions = _places(factored, answer)
    role = next((k for k, group in enumerate(positions) if index in group), -1)
    if role not in factored.vectors or contents(answer, index).dim() < 2:  # no vectors were requested
        return None
    results = [contents(answer, index if k == role else group[0]).double() for k, group in enumerate(positions)]
    values = contents(expected.values, _places(factored, expected.values)[factored.values][-1]).double()
    size = _size(values)
    vectors = results[role] if factored.vectors[role] == -1 else results[role].mT
    a = factored.matrix(contents(expected.before, 0).double(), expected.before.tree) / size
    identity = torch.eye(vectors.shape[-1], dtype=torch.float64).expand(*vectors.shape[:-2], -1, -1)
    got = factored.product(values / size.squeeze(-1), results), vectors.mT @ vectors
    return tuple(torch.cat([t.flatten(-2) for t in pair], -1) for pair in (got, (a, identity)))  # type: ignore[return-value]


def off(overload: str, expected: Expected, answer: Packed, index: int) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the values from `compared` and a mask for wrong ones, or None.

    An element is wrong if its error exceeds some roundings plus a multiple of ATen's own error.
    """
    pair, atens = (compared(overload, expected, packed, index) for packed in (answer, expected.native))
    if pair is None or atens is None:
        return None
    dtype = contents(expected.native, index).dtype.to_real()
    error = (atens[0] - atens[1]).abs().nan_to_num(0.0, posinf=0.0)
    largest = float(error.max()) if error.numel() else 0.0
    allowed = FACTOR_ROUNDINGS * unit(dtype) + min(ATENS * largest, MOST_NUDGED)
    return *pair, ~((pair[0] - pair[1]).abs() <= allowed)


def _places(factored: _Factored, answer: Packed) -> list[list[int]]:
    """Return the tensor indices for each result: written arguments, and returned tensors."""
    names = tensor_names(answer.tree)
    return [
        [i for i, name in enumerate(names) if name in (result, f"return[{k}]")]
        for k, result in enumerate(factored.results)
    ]


def _size(values: Tensor) -> Tensor:
    """Return each matrix's largest value, [..., 1, 1], or 1 if that is 0."""
    if not values.shape[-1]:
        return torch.ones(*values.shape[:-1], 1, 1, dtype=torch.float64)
    largest = values.abs().amax(-1)[..., None, None]
    return torch.where(largest > 0, largest, torch.ones_like(largest))


def repivoted(overload: str, expected: Expected, answer: Packed, index: int) -> Tensor | None:
    """Return a mask for the elements of factors that are right although their pivots are not the reference's.

    Return None if tensor `index` is no factor, or no permutation.
    """
    results = _PIVOTED.get(_base(overload).removeprefix("_"), ())
    names = tensor_names(answer.tree)
    places = {r: names.index(n) for k, r in enumerate(results) for n in (r, f"return[{k}]") if n in names}
    factors = [name for name in results if name in ("P", "L", "U", "LU", "pivots", "info")]
    if len(places) < len(results) or index not in [places[name] for name in factors]:
        return None
    got, want = ({name: contents(packed, places[name]) for name in factors} for packed in (answer, expected.native))
    a = contents(expected.before, 0)
    right = _is_factored(a, want) & _is_factored(a, got)
    if a.shape[-1] == a.shape[-2]:  # ATen may factor the transposed matrix, which saves a copy of a row-major one
        right |= _is_factored(a.mT, want) & _is_factored(a.mT, got)
    if index == places.get("info"):  # if a pivot is 0 but for roundings, it may be 0 in either factors
        return right & (got["info"] == _first_zero(got["LU"]))
    order = "pivots" if "pivots" in factors else "P"
    changed = (got[order] != want[order]).flatten(right.dim()).any(-1)
    mask, element = right & changed, contents(answer, index)
    return mask.view(*mask.shape, *[1] * (element.dim() - mask.dim())).expand(element.shape)


def reflected(overload: str, expected: Expected, answer: Packed, index: int) -> tuple[Tensor, Tensor] | None:
    """Return masks for elements that belong to matrices with dependent columns, and for those that are right.

    Return None if tensor `index` is neither Q nor R.
    """
    if _base(overload) not in _ORTHOGONAL:
        return None
    results, names = _ORTHOGONAL[_base(overload)], tensor_names(answer.tree)
    places = [names.index(n) for k, r in enumerate(results) for n in (r, f"return[{k}]") if n in names]
    if index not in places or len(places) < len(results):
        return None
    a = contents(expected.before, 0)
    wide = torch.complex128 if a.is_complex() else torch.float64
    q, r = _orthogonal(overload, [contents(answer, i).to(wide) for i in places])
    if q.shape[-1] != r.shape[-2]:  # Q was not requested
        return None
    exact = _orthogonal(overload, [contents(expected.values, i).to(wide) for i in places])[1]
    info, size = torch.finfo(a.dtype), _size(a.to(wide).flatten(-2)).squeeze(-1)
    step = FACTOR_ROUNDINGS * unit(a.dtype.to_real())
    dependent = (exact.diagonal(dim1=-2, dim2=-1).abs() <= HARDLY * info.eps * size).any(-1)
    dependent &= ((size >= info.tiny / info.eps) & size.isfinite()).all(-1)
    near = ((q @ r - a).flatten(-2).abs() <= step * size).all(-1)
    identity = torch.eye(q.shape[-1], dtype=wide)
    right = near & ((q.mH @ q - identity).flatten(-2).abs() <= step).all(-1) & (r == r.triu()).flatten(-2).all(-1)
    element = contents(answer, index)
    last = [1] * (element.dim() - right.dim())
    return dependent.view(*right.shape, *last).expand(element.shape), right.view(*right.shape, *last)


def _orthogonal(overload: str, factors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return Q and R for matrices [..., m, n]; geqrf gives Q as reflections below R, and their factors."""
    if _base(overload) == "linalg_qr":
        return factors[0], factors[1]
    a, tau = factors
    count = tau.shape[-1]
    return torch.linalg.householder_product(a[..., :count], tau), a.triu()[..., :count, :]


def _first_zero(factors: Tensor) -> Tensor:
    """Return the number of the first pivot that is 0 in each matrix, counted from 1, or 0 if there is none."""
    zeros = factors.diagonal(dim1=-2, dim2=-1) == 0
    position = torch.arange(1, zeros.shape[-1] + 1).expand(zeros.shape)
    first = torch.where(zeros, position, zeros.shape[-1] + 1).amin(-1) if zeros.shape[-1] else zeros.sum(-1)
    return torch.where(zeros.any(-1), first, 0)


def _is_factored(matrix: Tensor, factors: Mapping[str, Tensor]) -> Tensor:
    """Return True for each matrix [..., m, n] that its factors by partial pivoting give, up to roundings."""
    wide = torch.complex128 if matrix.is_complex() else torch.float64
    a = matrix.to(wide)
    if "LU" in factors:
        rows, pivots = a.shape[-2], factors["pivots"]
        possible = ((pivots >= 1) & (pivots <= rows)).all(-1)
        p, lower, upper = torch.lu_unpack(factors["LU"].to(wide), torch.where(possible[..., None], pivots, 1))
    else:
        p, lower, upper = (factors[name].to(wide) for name in ("P", "L", "U"))
        permutes = ((p == 0) | (p == 1)).all(-1).all(-1) & (p.sum(-1) == 1).all(-1) & (p.sum(-2) == 1).all(-1)
        possible = permutes & (lower.tril() == lower).flatten(-2).all(-1) & (upper.triu() == upper).flatten(-2).all(-1)
    step = FACTOR_ROUNDINGS * unit(matrix.dtype.to_real())
    size = _size(a.flatten(-2)).squeeze(-1)
    near = ((p @ lower @ upper - a).flatten(-2).abs() <= step * size).all(-1)
    most = 2**0.5 if matrix.is_complex() else 1.0  # LAPACK takes the largest sum of a real and an imaginary part
    return possible & near & (lower.flatten(-2).abs() <= most * (1 + step)).all(-1)
