"""Where two elements of a column are equally large, either may be the pivot; no other may."""

import pytest
import torch

from traces.values import pack
from verify.cases.case import case_of_values, reference
from verify.comparison.compare import compare

TIE = torch.tensor([[[1.0, 2, 5], [-1, 3, 1], [0.5, 4, 2]], [[0.25, 1, 0], [7, 2, 1], [1, 0, 2]]], dtype=torch.float64)


def factored(a, first):
    """Factors of 3 x 3 matrices [batch, 3, 3] by partial pivoting, but for the first pivot, which is given."""
    factors, pivots = a.clone(), torch.zeros(a.shape[:-1], dtype=torch.int32)
    for matrix, exchanged, row in zip(factors, pivots, first, strict=True):
        for k in range(3):
            chosen = row if k == 0 else k + int(matrix[k:, k].abs().argmax())
            matrix[[k, chosen]] = matrix[[chosen, k]]
            exchanged[k] = chosen + 1
            matrix[k + 1 :, k] /= matrix[k, k]
            matrix[k + 1 :, k + 1 :] -= matrix[k + 1 :, k, None] * matrix[k, k + 1 :]
    return factors.mT.contiguous().mT, pivots  # in the layout of LAPACK


def accepted(overload, arguments, result):
    packed = pack({**arguments, "return": result})
    packed.data = [bytes(d) for d in packed.data]
    return compare(overload, reference(case_of_values(overload, **arguments)), packed) is None


def lu(a, first, change=lambda factors, pivots: None):
    factors, pivots = factored(a, first)
    change(factors, pivots)
    info = torch.zeros(len(a), dtype=torch.int32)
    return accepted("aten::linalg_lu_factor_ex", {"A": a}, (factors, pivots, info))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.complex64])
def test_either_of_two_equal_elements_is_a_pivot(dtype):
    a = TIE.to(dtype)
    assert lu(a, (0, 1))  # as ATen
    assert lu(a, (1, 1))


@pytest.mark.parametrize("first", [(2, 1), (0, 0), (0, 2)])
def test_a_smaller_element_is_no_pivot(first):
    assert not lu(TIE, first)


def broken_factor(factors, pivots):
    factors[0, 1, 2] += 1e-3


def broken_pivot(factors, pivots):
    pivots[0, 1] = 5 - pivots[0, 1]


def out_of_range(factors, pivots):
    pivots[0, 2] = 4


@pytest.mark.parametrize("change", [broken_factor, broken_pivot, out_of_range])
def test_factors_with_other_pivots_have_to_give_the_matrix(change):
    assert not lu(TIE, (1, 1), change)


def test_a_transposed_matrix_is_factored_where_aten_factors_it():
    """The determinant factors the transpose of a row-major matrix, which is column-major already."""
    factors, pivots = factored(TIE, (1, 1))
    for a, right in ((TIE.mT.contiguous(), True), (TIE, False)):
        result = torch.ops.aten._linalg_det(a)[0]
        assert accepted("aten::_linalg_det", {"A": a}, (result, factors, pivots)) == right


def test_a_system_with_other_pivots():
    b = torch.ones(2, 3, dtype=torch.float64)
    result, _, _, info = torch.ops.aten._linalg_solve_ex(TIE, b)
    for row in (0, 1, 2):
        answer = (result, *factored(TIE, (row, 1)), info)
        assert accepted("aten::_linalg_solve_ex", {"A": TIE, "B": b}, answer) == (row < 2)


def test_permutations_and_triangles():
    factors, pivots = factored(TIE, (1, 1))
    p, lower, upper = torch.lu_unpack(factors, pivots)
    assert accepted("aten::linalg_lu", {"A": TIE}, (p, lower, upper))
    assert not accepted("aten::linalg_lu", {"A": TIE}, (p.mT.contiguous(), lower, upper))
    assert not accepted("aten::linalg_lu", {"A": TIE}, (p, lower @ upper, torch.eye(3).double().expand(2, 3, 3)))


@pytest.mark.parametrize(("last", "info", "right"), [(0.0, 2, True), (1e-17, 0, True), (0.0, 0, False)])
def test_the_first_pivot_that_is_zero_is_that_of_the_answers_own_factors(last, info, right):
    """Roundings decide if the second pivot of a matrix of rank 1 is 0."""
    a = torch.tensor([[1.0, 2], [0.5, 1]], dtype=torch.float64)
    factors = torch.tensor([[1.0, 2], [0.5, last]], dtype=torch.float64).mT.contiguous().mT
    answer = factors, torch.tensor([1, 2], dtype=torch.int32), torch.tensor(info, dtype=torch.int32)
    assert accepted("aten::linalg_lu_factor_ex", {"A": a}, answer) is right
