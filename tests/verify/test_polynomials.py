"""Values of polynomials near a root may be off as their terms are, and no farther."""

from fractions import Fraction

import pytest
import torch

from traces.values import pack
from verify.cases.case import case_of_values, reference
from verify.comparison.compare import compare


def contracted(x, n):
    """W_n(2 x - 1) with one rounding for each product and sum, as a GPU computes it."""

    def fma(a, b, c):
        return float(Fraction(a) * Fraction(b) + Fraction(c))

    x = fma(2.0, x, -1.0)
    before, value = 1.0, fma(2.0, x, 1.0)
    for _ in range(n - 1):
        before, value = value, fma(2 * x, value, -before)
    return value


def accepted(name, x, n, value):
    x, n, value = (torch.tensor([v], dtype=torch.float64) for v in (x, n, value))
    expected = reference(case_of_values(f"aten::special_{name}", x=x, n=n))
    packed = pack({"x": x, "n": n, "return": value})
    packed.data = [bytes(d) for d in packed.data]
    return compare(f"aten::special_{name}", expected, packed) is None


def test_a_contracted_recurrence_is_right_where_atens_own_is_off_by_a_hundred_roundings():
    """The exact value is -0.082715639570814..."""
    x, value = 0.2021654305995635, contracted(0.2021654305995635, 8)
    aten = torch.special.shifted_chebyshev_polynomial_w(torch.tensor(x, dtype=torch.float64), 8)
    assert abs(value - float(aten)) > 100 * 2.0**-52 * abs(value)
    assert accepted("shifted_chebyshev_polynomial_w", x, 8.0, value)
    assert not accepted("shifted_chebyshev_polynomial_w", x, 8.0, value * (1 + 2.0**-36))


NAMES = [
    *(f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_value_computed_in_float32_is_wrong(name):
    function = getattr(torch.special, name)
    for x in (0.3, 0.8, 1.7):
        argument = torch.tensor(x, dtype=torch.float64)
        exact = float(function(argument, 6))
        assert accepted(name, x, 6.0, exact)
        assert not accepted(name, x, 6.0, float(torch.tensor(exact).float()) * (1 + 2.0**-24)), (name, x)


def test_near_a_root_a_cosine_is_off_as_its_angle_is():
    """Both are cos(9 arccos x) with one rounding of the angle."""
    x, aten = -0.0021795947126051173, -0.01961510990011831
    assert float(torch.special.chebyshev_polynomial_t(torch.tensor(x, dtype=torch.float64), 9)) == aten
    assert accepted("chebyshev_polynomial_t", x, 9.0, -0.019615109900116532)
    assert not accepted("chebyshev_polynomial_t", x, 9.0, -0.019615109901)


def test_a_difference_of_equal_terms_is_a_zero_of_either_sign():
    assert accepted("hermite_polynomial_he", 0.0, 3.0, 0.0) and accepted("hermite_polynomial_he", 0.0, 3.0, -0.0)
