"""References of special functions against values to 20 digits, of which float64 holds 16."""

import math

import pytest
import torch

from traces.values import pack
from verify.cases import special_functions
from verify.cases.case import case_of_values, reference
from verify.comparison.compare import compare

BESSEL = {  # x: J0, J1, Y0, Y1
    1e-300: (1.0, 5e-301, -439.8351636227653, -6.366197723675813e299),
    1e-09: (1.0, 5e-10, -13.266645074938387, -636619772.3675814),
    0.01: (0.9999750001562495, 0.004999937500260416, -3.005455637083646, -63.67859628206065),
    0.7: (0.8812008886074053, 0.32899574154005895, -0.19066492933739512, -1.1032498719076334),
    1.0: (0.7651976865579666, 0.4400505857449335, 0.08825696421567696, -0.7812128213002887),
    2.404825557695773: (-6.10876525973673e-17, 0.5191474972894667, 0.509924383448479, 0.1027466824382596),
    3.8317059702075125: (-0.402759395702553, -6.149807356994906e-17, 0.0513976730994109, 0.41251739515882574),
    7.99: (0.17399001312793258, 0.23320071425350178, 0.22192874178576452, -0.16048695141166464),
    8.01: (0.16929736911054297, 0.236047103630834, 0.22508990929357914, -0.15562145403809824),
    15.5: (-0.10923065090005017, 0.16721318035174715, 0.17064491122943462, 0.11478614251334232),
    24.9: (0.0832459683530155, -0.13485569953140886, -0.13649918399676522, -0.08600255759555425),
    25.1: (0.10827567149994945, -0.11463478413442257, -0.11676770763803694, -0.11062223322783099),
    60.0: (-0.09147180408906187, 0.046598383758166315, 0.0473589522094494, 0.09186960936986689),
    1000.0: (0.024786686152420176, 0.004728311907089524, 0.0047159179776228135, -0.024784331292351778),
    123456.789: (-0.0015205971298614324, -0.001686542423004578, -0.0016865362645723143, 0.0015205902994019696),
    1000000000000000.0: (6.156638646885021e-09, 2.4468665123771328e-08, 2.4468665123771324e-08, -6.15663864688501e-09),
    1e30: (-5.589003016686147e-16, 5.694297368089524e-16, 5.694297368089524e-16, 5.589003016686147e-16),
}
AIRY = {
    -9000000000.0: -0.0017796015541927846,
    -123456.789: 0.008269168939908039,
    -1000.0: 0.05597189577301992,
    -60.0: 0.07778782447711559,
    -10.1: -0.05972681113345381,
    -9.9: 0.13623502644797944,
    -8.01: -0.062038322196627325,
    -5.520559828095551: 2.313678943005095e-16,
    -2.338107410459767: 2.743319340666283e-17,
    -1.0: 0.5355608832923521,
    -1e-09: 0.35502805414663663,
    0.0: 0.3550280538878172,
    1e-300: 0.3550280538878172,
    0.1: 0.3292031299435381,
    1.99: 0.035458538570668385,
    7.3: 3.325137824437759e-07,
    9.99: 1.1405176956374916e-10,
    10.01: 1.0700936543950783e-10,
    50.3: 5.4705023100071535e-105,
    103.5: 1.2145593287760307e-306,
    500.0: 0.0,
}
GAMMA = {  # a, x: P, Q
    (1e-40, 1.0): (1.0, 2.1938393439552026e-41),
    (1e-10, 1.0): (0.9999999999780617, 2.1938393441796778e-11),
    (0.001, 0.2): (0.9987774521605268, 0.0012225478394732089),
    (0.5, 1.1): (0.8619892624313404, 0.13801073756865953),
    (0.999, 1.11): (0.6708486445969264, 0.32915135540307366),
    (1.0, 1.0): (0.6321205588285577, 0.36787944117144233),
    (1.1, 2.0): (0.8418600513140176, 0.1581399486859824),
    (9.5, 10.5): (0.6631990980724665, 0.3368009019275336),
    (25.0, 25.0): (0.5266015314436506, 0.47339846855634937),
    (25.0, 30.0): (0.8427579727616084, 0.1572420272383916),
    (50.0, 40.0): (0.07033506665939496, 0.9296649333406051),
    (99.9, 99.0): (0.477298973465296, 0.522701026534704),
    (99.9, 101.0): (0.5568474953174181, 0.443152504682582),
    (256.0, 256.0): (0.5083114763014296, 0.4916885236985704),
    (256.0, 230.0): (0.04820584544388298, 0.951794154556117),
    (1000.0, 1040.0): (0.8959730884568929, 0.10402691154310705),
    (5000.0, 4900.0): (0.07794495622651391, 0.9220550437734861),
    (20000.0, 20000.0): (0.5009403162337493, 0.49905968376625065),
    (20000.0, 20200.0): (0.9210076300110995, 0.0789923699889005),
    (40.0, 3.0): (8.003095092521891e-31, 1.0),
    (3.0, 50.0): (1.0, 2.509303552201057e-19),
}


def close(got: torch.Tensor, want: torch.Tensor, size: torch.Tensor) -> bool:
    """To some roundings of the size."""
    return bool(((got - want).abs() <= 32 * 2.0**-53 * size).all())


@pytest.mark.parametrize(("column", "order", "second"), [(0, 0, False), (1, 1, False), (2, 0, True), (3, 1, True)])
def test_bessel_functions(column, order, second):
    x = torch.tensor(list(BESSEL), dtype=torch.float64)
    want = torch.tensor([row[column] for row in BESSEL.values()], dtype=torch.float64)
    amplitude = torch.sqrt(2 / torch.pi / x).clamp(max=1)
    assert close(special_functions.bessel(x, order, second), want, torch.maximum(want.abs(), amplitude))


def test_bessel_functions_of_negative_numbers_and_of_integers():
    x = torch.tensor([0.5, 9.0, 30.0], dtype=torch.float64)
    j0, j1 = (special_functions.bessel(x, order, False) for order in (0, 1))
    assert torch.equal(special_functions.bessel(-x, 0, False), j0)
    assert torch.equal(special_functions.bessel(-x, 1, False), -j1)
    assert special_functions.bessel(-x, 0, True).isnan().all()
    assert special_functions.bessel(torch.tensor([3]), 0, False).dtype == torch.float32


def test_airy_function():
    x, want = (torch.tensor(list(values), dtype=torch.float64) for values in (AIRY, AIRY.values()))
    amplitude = torch.where(x > 0, 0.0, x.abs().clamp(min=1) ** -0.25)
    assert close(special_functions.airy(x), want, torch.maximum(want.abs(), amplitude))
    assert special_functions.airy(torch.tensor([math.inf, -math.inf, math.nan])).isnan().all()
    assert special_functions.airy(torch.tensor([True])).dtype == torch.float32


def test_airy_function_of_a_phase_that_is_not_to_be_had():
    with pytest.raises(NotImplementedError, match="phase"):
        special_functions.airy(torch.tensor([1.0, -2e10]))


@pytest.mark.parametrize("upper", [False, True])
def test_incomplete_gamma_functions(upper):
    a, x = (torch.tensor(values, dtype=torch.float64) for values in zip(*GAMMA, strict=True))
    want = torch.tensor([row[int(upper)] for row in GAMMA.values()], dtype=torch.float64)
    got = special_functions.regularized_gamma(a, x, upper)
    assert bool(((got - want).abs() <= 2.0**-53 * (66 * want + 16 * (want > 1e-3))).all())


def test_atens_own_are_far_off():
    """Else these references have had their day."""
    j0 = torch.special.bessel_j0(torch.tensor(7.99, dtype=torch.float64))
    assert abs(float(j0) - BESSEL[7.99][0]) > 1e-10
    assert abs(float(torch.special.airy_ai(torch.tensor(-2.1, dtype=torch.float64))) - 0.1634845129992927) > 1e-6
    a, b = torch.tensor([99.9, 99.0], dtype=torch.float64)
    assert abs(float(torch.igamma(a, b)) - GAMMA[99.9, 99.0][0]) > 1e-11


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64, torch.int64])
def test_trigamma_is_infinite_at_its_poles_and_nowhere_else(dtype):
    x = torch.tensor([0, -1, -18, 3, 1], dtype=dtype)
    poles = [True, True, True, False, False]
    assert special_functions.polygamma(1, x).isposinf().tolist() == poles
    between = torch.tensor([-0.5, -17.5, 0.25], dtype=torch.float64)
    assert torch.equal(special_functions.polygamma(1, between), torch.special.polygamma(1, between))
    assert torch.equal(special_functions.polygamma(2, between), torch.special.polygamma(2, between))
    arguments = {"n": 1, "self": x}
    result = torch.special.polygamma(1, x)
    expected = reference(case_of_values("aten::polygamma", **arguments))
    infinite = result.where(~torch.tensor(poles), torch.inf)
    for answer, wrong in ((infinite, False), (result.nan_to_num(posinf=9.0), True)):
        packed = pack({**arguments, "return": answer})
        packed.data = [bytes(d) for d in packed.data]
        assert (compare("aten::polygamma", expected, packed) is not None) is wrong
