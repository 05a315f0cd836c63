"""The Airy function Ai in fp64 (DLMF 9.2, 9.7).

From -8 to 2 it is a Chebyshev series in x. Beyond that, let t = |x| and zeta = 2/3 t^(3/2). For x > 2, Ai is
e^-zeta / t^(1/4) times a series in 1 / zeta. For x < -8, it combines the cosine and sine of zeta - pi/4, each
multiplied by a series in 1 / zeta^2.

t^(3/2) is computed with twice the bits of fp64, because rounding it would show in e^-zeta and in the phase
(exact enough down to x = -1e10). Infinite arguments give NaN, and so does anything that overflows.

The coefficients come from interpolation at 44 to 60 Chebyshev points with 45 digits, truncated below 1e-18.
"""

import triton
import triton.language as tl
from blocks.error_functions import chebyshev_series

__all__ = ["airy_ai"]


@triton.jit
def leading_bits(x):
    """Return x cut to its first 26 bits.

    A product of two such numbers is exact in fp64, and so is the product with the remaining bits of another x.
    """
    # -2^27 clears the last 27 of the 52 stored bits; the first one of the 26 that remain is implicit
    return (x.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)


@triton.jit
def summed(total, rest, term):
    """Return the rounded sum, and `rest` plus its rounding error (Knuth, The Art of Computer Programming, 4.2.2)."""
    s = total + term
    b = s - total
    return s, rest + ((total - (s - b)) + (term - b))


@triton.jit
def power_less_turns(t, turns):
    """Return t^(3/2) - turns * 3 pi as an unevaluated sum, the second part small.

    2/3 of the result is the phase 2/3 t^(3/2) less whole turns of 2 pi. The square root and 3 pi are each split
    into three parts, so that the large partial products are exact. They are added with compensation, the
    largest first.
    """
    # a + b + c is sqrt t: two Newton steps, each with the exact remainder d
    a = leading_bits(tl.sqrt(t))
    d = t - a * a
    b = leading_bits(d / (2 * a))
    d = (d - 2 * a * b) - b * b
    c = d / (2 * (a + b))
    first, many = leading_bits(t), leading_bits(turns)
    last, few = t - first, turns - many
    total, rest = summed(first * a, tl.zeros_like(t), many * -9.424777746200562)
    total, rest = summed(total, rest, last * a)
    total, rest = summed(total, rest, few * -9.424777746200562)
    total, rest = summed(total, rest, first * b)
    total, rest = summed(total, rest, many * -2.145688178245564e-07)
    total, rest = summed(total, rest, last * b)
    total, rest = summed(total, rest, few * -2.145688178245564e-07)
    total, rest = summed(total, rest, t * c)
    return summed(total, rest, turns * -3.6739403974420594e-16)


@triton.jit
def ai_near(x):
    """Return Ai(x) for -2 <= x <= 2."""
    return chebyshev_series(x * 0.5, (
        0.26381798191440015, -0.19176745775077353, -0.11544587863809751, 0.10129229869705277, -0.020634225363441998,
        -0.005263460235879724, 0.003521327342050992, -0.0005522127136308693, -8.722346961097546e-05,
        4.9972155304858785e-05, -6.58209616965938e-06, -7.465940980665808e-07, 3.8371005050115145e-07,
        -4.427726202518875e-08, -3.901520676114033e-09, 1.8443828865292734e-09, -1.9121426939191717e-10,
        -1.3741370931826864e-11, 6.069496004903079e-12, -5.749799143489761e-13, -3.483089713417748e-14,
        1.452966097730621e-14, -1.2731201711598244e-15, -6.658181469864444e-17, 2.6436799630296418e-17,
        -2.162377737234879e-18,
    ))  # fmt: skip


@triton.jit
def ai_middle(x):
    """Return Ai(x) for -8 <= x < -2."""
    return chebyshev_series((x + 5) / 3, (
        0.008211707665311681, -0.0728797289203074, 0.0709902874410081, 0.09365605237669514, 0.12436666036834287,
        0.1851850924086498, -0.18526566701769376, -0.06789145818277069, 0.08483873684822452, -0.0012108490180038633,
        -0.01741150467717718, 0.00392522918742804, 0.0016515217920118114, -0.0008024965246025223,
        -1.948638705413569e-05, 7.803666115062975e-05, -1.2447733966111957e-05, -3.6344179149395517e-06,
        1.4587700868917968e-06, -1.6890546691311816e-08, -8.001874692970888e-08, 1.3454447592537027e-08,
        1.8259126177951898e-09, -8.825753229745724e-10, 5.198749925127941e-11, 2.7580389520277003e-11,
        -5.811387953316283e-12, -1.7214179063364052e-13, 2.1670484634796728e-13, -2.32324887640088e-14,
        -3.476548497354827e-15, 1.1056455607876884e-15, -4.408086925735383e-17, -2.325193994495019e-17,
        3.910625186875424e-18,
    ))  # fmt: skip


@triton.jit
def ai_decaying(t):
    """Return Ai(t) for t >= 2, which underflows to 0 from t = 200.

    zeta = 2/3 t^(3/2) is split into an exact product and a small rest, and e^-zeta is the product of both
    exponentials.
    """
    t = tl.minimum(t, 200.0)
    power, small = power_less_turns(t, tl.zeros_like(t))
    head = leading_bits(power)
    rest = head * 9.934107462565104e-09 + (power - head + small) * 0.6666666666666666
    series = chebyshev_series(5.656854249492381 / power - 1, (
        0.2776956095117059, -0.004172967562045923, 0.00020669586013998011, -1.7280997841068207e-05,
        1.928052166797157e-06, -2.605774398776262e-07, 4.051516883512395e-08, -7.022240440986223e-09,
        1.3286081997701028e-09, -2.703558037129289e-10, 5.852297782838998e-11, -1.3363584416519756e-11,
        3.1978547149289153e-12, -7.976813559559603e-13, 2.0651347541109665e-13, -5.52899978215978e-14,
        1.526165619010181e-14, -4.331979304955806e-15, 1.2616239319898747e-15, -3.7626070399357594e-16,
        1.1471616156264618e-16, -3.570144365109208e-17, 1.1326462271400218e-17, -3.658761589006902e-18,
        1.2021046148071358e-18,
    ))  # fmt: skip
    return series / tl.sqrt(tl.sqrt(t)) * tl.exp(rest * -1.0) * tl.exp(head * -0.6666666567325592)


@triton.jit
def ai_oscillating(t):
    """Return Ai(-t) for t >= 8."""
    power = t * tl.sqrt(t)
    angle, small = power_less_turns(t, tl.floor(power * 0.1061032953945969 + 0.5))
    phase = angle * 0.6666666666666666 + small * 0.6666666666666666
    cosine, sine = tl.cos(phase), tl.sin(phase)
    z = 22.627416997969522 / power
    u = 2 * z * z - 1
    p = chebyshev_series(u, (
        0.9999188179179308, -8.104660923669418e-05, 1.3475665984689078e-07, -7.085584714312658e-10,
        7.48184186508309e-12, -1.2902774343407968e-13, 3.225040209748759e-15, -1.0809146475761038e-16,
        4.600692858267513e-18,
    ))  # fmt: skip
    q = chebyshev_series(u, (
        0.0693617822693956, -8.239286225558228e-05, 2.672091950986567e-07, -2.074236853681907e-09,
        2.87339259334291e-11, -6.087352091889245e-13, 1.7924891244638023e-14, -6.875999019684054e-16,
        3.279803636500588e-17, -1.8787767960871875e-18,
    ))  # fmt: skip
    r = (cosine + sine) * p + (sine - cosine) * q * (1.5 / power)
    return r * 0.3989422804014327 / tl.sqrt(tl.sqrt(t))


@triton.jit
def airy_ai(x):
    """Return Ai(x), and NaN if x is NaN or infinite."""
    size = tl.abs(x)
    finite = size < float("inf")
    r = ai_near(tl.where(size <= 2, x, 0.0))
    r = tl.where(x < -2, ai_middle(tl.where((x < -2) & (x >= -8), x, -2.0)), r)
    r = tl.where(x > 2, ai_decaying(tl.where((x > 2) & finite, x, 2.0)), r)
    r = tl.where(x < -8, ai_oscillating(tl.where((x < -8) & finite, size, 8.0)), r)
    return tl.where(finite, r, float("nan"))
