"""Factors of matrices, of which the definition leaves something open: signs of vectors, and which basis of a space that
belongs to equal values; of matrices that are not symmetric the order of the values and the phases of vectors, too.

Of such a tensor not its elements are compared, but what is laid down of it: the product of all factors, which is the
matrix, and the products of its vectors with each other, which are the identity (Golub and Van Loan, Matrix
Computations, 2013, theorems 2.4.1 and 8.1.1). Values are in order and compared as they are; those of the product are
the reference's, since an answer's own may be too large for their dtype. Values that are in no order are compared
with the nearest of the reference's; their vectors, of length 1, with their own products with the matrix, and that they
are about as independent as the reference's, but where those are hardly so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from traces.values import Packed
from verify.cases.case import Expected, contents, tensor_names
from verify.comparison.tolerance import ATENS, FACTOR_ROUNDINGS, MOST_NUDGED, unit

Arguments = Mapping[str, Any]
Product = Callable[[Tensor, Sequence[Tensor]], Tensor]


@dataclass(frozen=True)
class _Factored:
    """Of an overload. results: their names. values: which of them are the values, whose largest is the size of errors.
    matrix: what is factored. product: of results, with values as given. vectors: results, and the dimension that steps
    through an orthonormal set."""

    results: tuple[str, ...]
    values: int
    matrix: Callable[[Tensor, Arguments], Tensor]
    product: Product
    vectors: Mapping[int, int]


def _symmetric(a: Tensor, arguments: Arguments) -> Tensor:
    """The matrix of which one triangle is read."""
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
DEPENDENT = 2.0**-10  # of the reference's least singular value, so that vectors count as dependent
HARDLY = 16  # times the root of a rounding: eigenvectors that are less independent change with the roundings


def aligned(overload: str, expected: Expected, answer: Packed, index: int) -> Tensor:
    """Tensor `index` of an answer; values that are in no order in that of the reference's that are nearest."""
    found = contents(answer, index)
    names = _UNORDERED.get(_base(overload).removeprefix("_"), ())
    if tensor_names(answer.tree)[index] not in names or answer is expected.values:
        return found
    exact = contents(expected.values, index)
    if not found.numel() or found.shape != exact.shape:
        return found
    pairs = zip(found.view(-1, found.shape[-1]), exact.view(-1, exact.shape[-1]), strict=True)
    return torch.stack([v[_nearest(v, e)] for v, e in pairs]).view(found.shape)


def _nearest(values: Tensor, exact: Tensor) -> Tensor:
    """Which value belongs to each of the reference's: the two that are nearest of all, then of the others."""
    far = (values.to(torch.complex128)[None, :] - exact.to(torch.complex128)[:, None]).abs()
    far = far.nan_to_num(torch.finfo(torch.float64).max)
    found = torch.zeros(len(exact), dtype=torch.int64)
    for _ in range(len(exact)):
        row, column = divmod(int(far.argmin()), len(values))
        found[row] = column
        far[row, :] = far[:, column] = torch.inf
    return found


def _base(overload: str) -> str:
    return overload.removeprefix("aten::").partition(".")[0]


def _of_general(expected: Expected, answer: Packed, index: int) -> tuple[Tensor, Tensor] | None:
    """Of the eigenvectors of a matrix that need not be symmetric: A V - V diag(values), as a multiple of the size of A,
    the squares of lengths, and whether vectors are dependent, though the reference's are not."""
    places = _places(_GENERAL, answer)
    if index not in places[1]:
        return None
    values, vectors = (contents(answer, i).to(torch.complex128) for i in (places[0][0], index))
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
    """What is compared in place of tensor `index` of an answer, and what it has to be, flat and in float64: the product
    of the factors as a multiple of their largest value, then the products of the vectors; None for other tensors."""
    if _base(overload) == "linalg_eig":
        return _of_general(expected, answer, index)
    factored = _FACTORED.get(_base(overload))
    if factored is None:
        return None
    places = _places(factored, answer)
    role = next((k for k, several in enumerate(places) if index in several), -1)
    if role not in factored.vectors or contents(answer, index).dim() < 2:  # no vectors were asked for
        return None
    results = [contents(answer, index if k == role else several[0]).double() for k, several in enumerate(places)]
    values = contents(expected.values, _places(factored, expected.values)[factored.values][-1]).double()
    size = _size(values)
    vectors = results[role] if factored.vectors[role] == -1 else results[role].mT
    a = factored.matrix(contents(expected.before, 0).double(), expected.before.tree) / size
    identity = torch.eye(vectors.shape[-1], dtype=torch.float64).expand(*vectors.shape[:-2], -1, -1)
    got = factored.product(values / size.squeeze(-1), results), vectors.mT @ vectors
    return tuple(torch.cat([t.flatten(-2) for t in pair], -1) for pair in (got, (a, identity)))  # type: ignore[return-value]


def off(overload: str, expected: Expected, answer: Packed, index: int) -> tuple[Tensor, Tensor, Tensor] | None:
    """`compared`, and where it is wrong: off by more than some roundings and some times what ATen's own is."""
    found, atens = (compared(overload, expected, packed, index) for packed in (answer, expected.native))
    if found is None or atens is None:
        return None
    dtype = contents(expected.native, index).dtype.to_real()
    error = (atens[0] - atens[1]).abs().nan_to_num(0.0, posinf=0.0)
    largest = float(error.max()) if error.numel() else 0.0
    allowed = FACTOR_ROUNDINGS * unit(dtype) + min(ATENS * largest, MOST_NUDGED)
    return *found, ~((found[0] - found[1]).abs() <= allowed)


def _places(factored: _Factored, answer: Packed) -> list[list[int]]:
    """The indices of the tensors that hold each result: arguments that are written, and what is returned."""
    names = tensor_names(answer.tree)
    return [
        [i for i, name in enumerate(names) if name in (result, f"return[{k}]")]
        for k, result in enumerate(factored.results)
    ]


def _size(values: Tensor) -> Tensor:
    """The largest value of each matrix, [..., 1, 1], or 1 where that is 0."""
    if not values.shape[-1]:
        return torch.ones(*values.shape[:-1], 1, 1, dtype=torch.float64)
    largest = values.abs().amax(-1)[..., None, None]
    return torch.where(largest > 0, largest, torch.ones_like(largest))
