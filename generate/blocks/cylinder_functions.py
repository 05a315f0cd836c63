"""Bessel functions J and Y with order 0 and 1, in fp64 (DLMF 10.8, 10.17).

Up to x = 8 they are series in x^2. Beyond that they use the modulus and phase of Hankel's expansion, with P and
Q as series in 1 / x^2. The sine and cosine are those of x itself, so that the phase is not rounded. Infinite
arguments give NaN.

The coefficients come from interpolation at 34 or 44 Chebyshev points with 45 digits, truncated below 1e-18.
"""

import triton
import triton.language as tl
from blocks.error_functions import chebyshev_series

__all__ = ["cylinder_j0", "cylinder_j1", "cylinder_y0", "cylinder_y1"]


@triton.jit
def near_square(size):
    """Return x^2 mapped to [-1, 1] for x <= 8."""
    # beyond 8 the series is not valid and its result is not used: -1 keeps it finite
    return tl.where(size <= 8, size * size * 0.03125, 0.0) - 1


@triton.jit
def oscillation(size, p, q, SECOND: tl.constexpr, ORDER: tl.constexpr):
    """Return sqrt(2 / (pi x)) (P cos w - Q sin w), or with SECOND sqrt(2 / (pi x)) (P sin w + Q cos w).

    The phase w = x - pi / 4 - ORDER pi / 2 is expanded by the addition formulas.
    """
    cosine, sine = tl.cos(size), tl.sin(size)
    if ORDER == 0:
        c, s = cosine + sine, sine - cosine
    else:
        c, s = sine - cosine, (sine + cosine) * -1.0
    r = p * s + q * c if SECOND else p * c - q * s
    return r * 0.5641895835477563 / tl.sqrt(size)


@triton.jit
def hankel_0(size):
    """Return P and Q with order 0 for x >= 8."""
    z = 8 / size
    t = 2 * z * z - 1
    p = chebyshev_series(t, (
        0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
        1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
        4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
        1.6305919233744186e-17, -2.880866169482871e-18,
    ))  # fmt: skip
    q = chebyshev_series(t, (
        -0.015555854605337009, 6.838519942611649e-05, -7.414498411060647e-07, 1.7972457247968992e-08,
        -7.27191593686632e-10, 4.2201219046687385e-11, -3.206747420996635e-12, 3.006145125351706e-13,
        -3.336328185322427e-14, 4.255225040245461e-15, -6.09993013164005e-16, 9.662128970303257e-17,
        -1.6686065214378146e-17, 3.1082440486738143e-18,
    ))  # fmt: skip
    return p, q * z


@triton.jit
def hankel_1(size):
    """Return P and Q with order 1 for x >= 8."""
    z = 8 / size
    t = 2 * z * z - 1
    p = chebyshev_series(t, (
        1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
        -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
        -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
        -1.7312313216116335e-17, 3.0492991197665872e-18,
    ))  # fmt: skip
    q = chebyshev_series(t, (
        0.04677778706953532, -9.62772354915708e-05, 9.138615257955454e-07, -2.0959781384083424e-08,
        8.229193327650554e-10, -4.686363688176945e-11, 3.5152187949686082e-12, -3.2643156743279e-13,
        3.5967765829165294e-14, -4.5612523950772974e-15, 6.508282957783384e-16, -1.0269147531823243e-16,
        1.767635548776479e-17, -3.2834519872981614e-18,
    ))  # fmt: skip
    return p, q * z


@triton.jit
def far_function(size, SECOND: tl.constexpr, ORDER: tl.constexpr):
    """Return J, or Y with SECOND, for x >= 8; smaller arguments are replaced by 8."""
    size = tl.where(size < 8, 8.0, size)
    if ORDER == 0:
        p, q = hankel_0(size)
    else:
        p, q = hankel_1(size)
    return oscillation(size, p, q, SECOND, ORDER)


@triton.jit
def near_j0(size):
    """Return J0(x) for 0 <= x <= 8."""
    return chebyshev_series(near_square(size), (
        0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977,
        0.15806710233209725, -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504,
        3.246032882100508e-05, -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09,
        7.848696314479465e-11, -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16,
        1.2218515873961411e-17,
    ))  # fmt: skip


@triton.jit
def near_j1(size):
    """Return J1(x) / x for 0 <= x <= 8."""
    return chebyshev_series(near_square(size), (
        0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791,
        0.022213639654966037, -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05,
        1.9858774049915165e-06, -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10,
        3.160154580348003e-12, -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17,
    ))  # fmt: skip


@triton.jit
def cylinder_j0(x):
    """Return J0(x); the far branch only runs if a lane of the block needs it."""
    size = tl.abs(x)
    r = tl.where(size <= 8, near_j0(size), size)
    if tl.max((size > 8).to(tl.int32), 0) > 0:
        r = tl.where(size <= 8, r, far_function(size, False, 0))
    return r


@triton.jit
def cylinder_j1(x):
    """Return J1(x); the far branch only runs if a lane of the block needs it."""
    size = tl.abs(x)
    r = tl.where(size <= 8, x * near_j1(size), size)
    if tl.max((size > 8).to(tl.int32), 0) > 0:
        far = far_function(size, False, 1)
        r = tl.where(size <= 8, r, tl.where(x < 0, far * -1.0, far))
    return r


@triton.jit
def cylinder_y0(x):
    """Return Y0(x): -infinity at 0, and NaN if x < 0.

    Up to 8 it is 2 / pi log(x / 2) J0(x) plus a series.
    """
    a = tl.where((x > 0) & (x <= 8), x, 8.0)
    near = chebyshev_series(near_square(a), (
        0.03645469809116044, -0.2783237094075825, 0.2960499990207148, 0.09825508408187864,
        -0.10755155280627783, 0.031799074084414514, -0.005161397105810715, 0.0005498525320039012,
        -4.1996983149420134e-05, 2.4290361107923793e-06, -1.1049969793472957e-07, 4.06651736597911e-09,
        -1.2374148898289854e-10, 3.1685725528945945e-12, -6.926956032431002e-14, 1.3086308625876684e-15,
        -2.1586201986914482e-17,
    ))  # fmt: skip
    near += 0.6366197723675814 * tl.log(0.5 * a) * near_j0(a)
    r = tl.where(x <= 8, near, x)
    if tl.max((x > 8).to(tl.int32), 0) > 0:
        r = tl.where(x <= 8, r, far_function(x, True, 0))
    return tl.where(x == 0, float("-inf"), tl.where(x < 0, float("nan"), r))


@triton.jit
def cylinder_y1(x):
    """Return Y1(x): -infinity at 0, and NaN if x < 0.

    Up to 8 it is 2 / pi (log(x / 2) J1(x) - 1 / x) plus x times a series.
    """
    a = tl.where((x > 0) & (x <= 8), x, 8.0)
    near = chebyshev_series(near_square(a), (
        0.038300769852423776, -0.08182561412732826, -0.0248677076121964, 0.047967452752746984,
        -0.01852588451089802, 0.003680607687823511, -0.0004627254060293369, 4.06940026958087e-05,
        -2.6617695125295625e-06, 1.350602691325434e-07, -5.483524110336276e-09, 1.8245086841229007e-10,
        -5.070666636591129e-12, 1.1956162517587948e-13, -2.423162442712473e-15, 4.268126513072962e-17,
    ))  # fmt: skip
    near = a * near + 0.6366197723675814 * (tl.log(0.5 * a) * a * near_j1(a) - 1 / a)
    r = tl.where(x <= 8, near, x)
    if tl.max((x > 8).to(tl.int32), 0) > 0:
        r = tl.where(x <= 8, r, far_function(x, True, 1))
    return tl.where(x == 0, float("-inf"), tl.where(x < 0, float("nan"), r))
