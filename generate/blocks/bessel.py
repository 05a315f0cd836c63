"""Modified Bessel functions I and K with order 0 and 1, in fp32 and fp64.

The fp64 coefficients come from interpolation at 64 to 90 Chebyshev points with 45 digits, truncated below
1e-18.
"""

import triton
import triton.language as tl
from blocks.error_functions import chebyshev_series
from blocks.functions import polynomial


@triton.jit
def near_bessel_i0(a):
    """Return e^-a I0(a) for 0 <= a <= 8."""
    return chebyshev_series(a * 0.25 - 1, (
        0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
        0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
        0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
        1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
        6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
        9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
        7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
        3.3307945188222384e-17, -4.4153416464793395e-18, 5.669178006921496e-19,
    ), 19)  # fmt: skip


@triton.jit
def scaled_bessel_i0_fp64(x):
    """Return e^-|x| I0(x) in fp64: 0 at infinity, and NaN if x is NaN.

    Beyond 8 it is a series in 1 / |x| divided by sqrt |x|.
    """
    a = tl.abs(x)
    near = near_bessel_i0(tl.where(a <= 8, a, 0.0))
    b = tl.where(a > 8, a, 8.0)
    far = chebyshev_series(16 / b - 1, (
        0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
        2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
        1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
        7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14,
        -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
        -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18,
        -7.233180487874754e-18, 9.921475412173699e-19, 1.193650890845982e-18,
    ), 7)  # fmt: skip
    far = far / tl.sqrt(b)
    return tl.where(x != x, x, tl.where(a <= 8, near, tl.where(a == float("inf"), 0.0, far)))


@triton.jit
def near_bessel_i1(a):
    """Return e^-a I1(a) / a for 0 <= a <= 8."""
    return chebyshev_series(a * 0.25 - 1, (
        0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
        0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
        0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05,
        3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08,
        9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
        1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14,
        7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
        2.7779141127610464e-18, -3.541581772542136e-19,
    ), 20)  # fmt: skip


@triton.jit
def scaled_bessel_i1_fp64(x):
    """Return e^-|x| I1(x) in fp64: 0 at infinity, and NaN if x is NaN."""
    a = tl.abs(x)
    near = a * near_bessel_i1(tl.where(a <= 8, a, 0.0))
    b = tl.where(a > 8, a, 8.0)
    far = chebyshev_series(16 / b - 1, (
        0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
        -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
        -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
        -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
        1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
        2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18,
        7.517296310842105e-18, -9.314178867326884e-19, -1.242193275194891e-18,
    ), 7)  # fmt: skip
    r = tl.where(a <= 8, near, tl.where(a == float("inf"), 0.0, far / tl.sqrt(b)))
    return tl.where(x != x, x, tl.where(x < 0, r * -1.0, r))


@triton.jit
def bessel_i0_fp32(a):
    """Return I0(a), valid up to 7, and e^-a I0(a), valid beyond 7, in fp32 for a >= 0.

    The first is a minimax polynomial in a^2, the second one in 1 / a multiplied by 1 / sqrt a.
    """
    s = a * a
    near = 1 + s * polynomial(s, (
        1.676419668e-14, 1.781048248e-12, 4.971307873e-10, 6.721036938e-08, 6.789441248e-06, 0.0004339762592,
        0.01562515278, 0.2499998604,
    ))  # fmt: skip
    inverse = tl.rsqrt(a)
    series = polynomial(inverse * inverse, (0.1332102499, 0.01432475955, 0.02895050496, 0.04984959657, 0.3989423385))
    return near, inverse * series


@triton.jit
def bessel_i1_fp32(a):
    """Return I1(a), valid up to 7, and e^-a I1(a), valid beyond 7, in fp32 for a >= 0.

    The polynomials are like those in `bessel_i0_fp32`.
    """
    s = a * a
    near = a * (0.5 + s * polynomial(s, (
        8.96832536e-16, 1.173236154e-13, 3.509201631e-11, 5.615632891e-09, 6.786621422e-07, 5.424986261e-05,
        0.00260417877, 0.06249998703,
    )))  # fmt: skip
    inverse = tl.rsqrt(a)
    series = polynomial(
        inverse * inverse, (-0.5803791416, 0.04872754795, -0.05029522136, -0.04639780065, -0.1496081137, 0.398942291)
    )
    return near, inverse * series


@triton.jit
def scaled_bessel_i0(x):
    """Return e^-|x| I0(x)."""
    if x.dtype.is_fp64():
        r = scaled_bessel_i0_fp64(x)
    else:
        near, far = bessel_i0_fp32(tl.abs(x))
        r = tl.where(tl.abs(x) > 7, far, tl.exp(tl.abs(x) * -1.0) * near)
    return r


@triton.jit
def bessel_i0(x):
    """Return I0(x).

    It overflows at the same x as ATen's, and is NaN at infinity like ATen's.
    """
    if x.dtype.is_fp64():
        r = tl.exp(tl.abs(x)) * scaled_bessel_i0_fp64(x)
    else:
        near, far = bessel_i0_fp32(tl.abs(x))
        r = tl.where(tl.abs(x) > 7, tl.exp(tl.abs(x)) * far, near)
    return r


@triton.jit
def scaled_bessel_i1(x):
    """Return e^-|x| I1(x)."""
    if x.dtype.is_fp64():
        r = scaled_bessel_i1_fp64(x)
    else:
        near, far = bessel_i1_fp32(tl.abs(x))
        r = tl.where(tl.abs(x) > 7, far, tl.exp(tl.abs(x) * -1.0) * near)
        r = tl.where(x < 0, r * -1.0, r)
    return r


@triton.jit
def bessel_i1(x):
    """Return I1(x), with the same overflow and infinity behavior as `bessel_i0`."""
    if x.dtype.is_fp64():
        r = tl.exp(tl.abs(x)) * scaled_bessel_i1_fp64(x)
    else:
        near, far = bessel_i1_fp32(tl.abs(x))
        r = tl.where(tl.abs(x) > 7, tl.exp(tl.abs(x)) * far, near)
        r = tl.where(x < 0, r * -1.0, r)
    return r


@triton.jit
def scaled_bessel_k0(x):
    """Return e^x K0(x): infinity at 0, and NaN if x < 0 or x is NaN.

    Up to x = 2 it is a series in x^2 minus log(x / 2) I0(x). Beyond that it is a series in 1 / x divided by
    sqrt x.
    """
    a = tl.where((x > 0) & (x <= 2), x, 2.0)
    near = chebyshev_series(0.5 * a * a - 1, (
        -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926,
        2.286212103119452e-05, 2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11,
        4.2598161427910826e-14, 1.3744654358807508e-16, 3.5708965285083736e-19,
    ), 7)  # fmt: skip
    power = tl.exp(a)
    near = near - tl.log(0.5 * a) * power * near_bessel_i0(a)
    b = tl.where(x > 2, x, 2.0)
    far = chebyshev_series(4 / b - 1, (
        1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802,
        1.39498137188765e-05, -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08,
        8.574034017414225e-09, -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11,
        1.8559491149549264e-11, -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13,
        8.032890775068375e-14, -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15,
        5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17,
        5.3004337711773354e-18, -1.7331712005821001e-18,
    ), 10)  # fmt: skip
    far = far / tl.sqrt(b)
    r = tl.where(x <= 2, power * near, tl.where(x == float("inf"), 0.0, far))
    return tl.where(x != x, x, tl.where(x == 0, float("inf"), tl.where(x < 0, float("nan"), r)))


@triton.jit
def scaled_bessel_k1(x):
    """Return e^x K1(x): infinity at 0, and NaN if x < 0 or x is NaN.

    Up to x = 2 it is a series in x^2 divided by x, plus log(x / 2) I1(x). Beyond that it is a series in 1 / x
    divided by sqrt x.
    """
    a = tl.where((x > 0) & (x <= 2), x, 2.0)
    near = chebyshev_series(0.5 * a * a - 1, (
        0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864,
        -0.0001730288957513052, -2.4334061415659684e-06, -2.213387630734726e-08, -1.4114883926335278e-10,
        -6.666901694199329e-13, -2.427449850519366e-15, -7.023863479386288e-18,
    ), 8)  # fmt: skip
    power = tl.exp(a)
    near = near / a + tl.log(0.5 * a) * power * a * near_bessel_i1(a)
    b = tl.where(x > 2, x, 2.0)
    far = chebyshev_series(4 / b - 1, (
        1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162,
        -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08,
        -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11,
        -2.129967838427791e-11, 5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13,
        -8.976705182010146e-14, 2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15,
        -6.057047270643018e-16, 1.8380935752430455e-16, -5.689462849193648e-17, 1.7940510478863572e-17,
        -5.7567444820733025e-18, 1.8778651901623268e-18,
    ), 11)  # fmt: skip
    far = far / tl.sqrt(b)
    r = tl.where(x <= 2, power * near, tl.where(x == float("inf"), 0.0, far))
    return tl.where(x != x, x, tl.where(x == 0, float("inf"), tl.where(x < 0, float("nan"), r)))
