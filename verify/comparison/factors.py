"""Factors of matrices, of which the definition leaves something open: signs of vectors, and which basis of a space that
belongs to equal values.

Of such a tensor not its elements are compared, but what is laid down of it: the product of all factors, which is the
matrix, and the products of its vectors with each other, which are the identity (Golub and Van Loan, Matrix
Computations, 2013, theorems 2.4.1 and 8.1.1). Values are in order and compared as they are; those of the product are
the reference's, since an answer's own may be too large for their dtype.
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


def compared(overload: str, expected: Expected, answer: Packed, index: int) -> tuple[Tensor, Tensor] | None:
    """What is compared in place of tensor `index` of an answer, and what it has to be, flat and in float64: the product
    of the factors as a multiple of their largest value, then the products of the vectors; None for other tensors."""
    factored = _FACTORED.get(overload.removeprefix("aten::").partition(".")[0])
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
    dtype = contents(expected.native, index).dtype
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
