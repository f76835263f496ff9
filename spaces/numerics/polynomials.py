"""Polynomials that stand in for transcendental functions, in float32.

All are minimax fits of our own: Lawson's iteratively reweighted least squares (C. L. Lawson 1961)
on 600 Chebyshev nodes in float64, rounded to float32. Each states its interval and its error
before rounding. Coefficients stand from the lowest power to the highest.
"""

from __future__ import annotations

from collections.abc import Iterable

# exp(f) for |f| <= log(2)/2 with the first two coefficients exact: relative error 3.1e-9.
EXP = (1.0, 1.0, 0.49999994, 0.166665196, 0.0416683927, 0.00836878084, 0.00138144672)

# exp2(f) for |f| <= 1/2 with the first coefficient exact: relative error 9.2e-8.
EXP2 = (1.0, 0.693147004, 0.240222424, 0.0555073358, 0.00967151299, 0.00132647273)

# (log(1 + f) - f + f*f/2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2): relative error 5.8e-9 of log.
LOG = (
    *(0.333333313, -0.250008196, 0.200012267, -0.166233569, 0.142017573, -0.131601825),
    *(0.12761578, -0.076344974),
)

# (sin(r) / r - 1) / r**2 in s = r*r for |r| <= pi/4: relative error 3.8e-9 of sin.
SIN = (-0.166666552, 0.0083321603, -1.95152505e-4)
# (cos(r) - 1 + s/2) / s**2 for the same: relative error 1.2e-10 of cos.
COS = (0.041666646, -0.0013887316, 2.443312e-5)

# erf(a) / a in t = a*a - 7.41125 for a <= 3.85: relative error 8.4e-8. About the middle
# of its interval it is well conditioned; in powers of a*a it would lose half its digits.
ERF = (
    *(0.367284805, -0.0247329213, 0.00247988896, -2.71131139e-4, 3.01002856e-5),
    *(-3.28056012e-6, 3.40785277e-7, -3.27854259e-8, 3.08724402e-9, -3.03370967e-10),
    *(2.29579099e-11, -8.54693649e-13, 8.3929581e-14, -1.67090954e-14, 9.27456396e-16),
)

# tanh(a) / a in t = a*a for a <= 9.02, numerator and denominator: relative error 2.1e-8.
TANH_TOP = (1.0, 0.133797124, 0.00349402847, 2.05833821e-5, 1.33189371e-8)
TANH_BOTTOM = (1.0, 0.467130274, 0.0258710496, 3.28308292e-4, 7.76196373e-7)
# The same without a denominator for a <= 1/2: relative error 5.5e-7.
TANH_NEAR_END = 0.5
TANH_NEAR = (0.999999464, -0.333263189, 0.131903067, -0.0444024503)
# And for a <= 0.11: relative error 2.4e-6, and so no more of tanh itself than over that interval.
TANH_NEAREST_END = 0.11
TANH_NEAREST = (0.99999757, -0.33172706)

# gelu(x) = max(x, 0) - a Phi(-a) with a = |x|. The fourth root of Phi(-a) is so smooth that one
# short polynomial serves, and its error all but vanishes in the tail, where the power is small.
# Phi(-a)**(1/4), zero at the end of its interval: error of a Phi(-a) 7.4e-8.
GELU_END = 5.8
GELU = (
    *(0.840895712, -0.167722076, -0.0502608754, 0.00480319373, 0.00359537429),
    *(1.15465737e-4, -3.74424591e-4, 7.57021189e-5, -5.78113713e-6, 1.3481862e-7),
)
# The same with the tanh approximation in the place of Phi: error 1.1e-7.
GELU_TANH_END = 5.5
GELU_TANH = (
    *(0.840893507, -0.167678893, -0.0505443178, 0.0058414326, 0.00208094297, 0.00177016808),
    *(-0.00149096677, 4.78075293e-4, -8.30969439e-5, 7.6849974e-6, -2.96080572e-7),
)


def fused_horner(
    coefficients: Iterable[float], variable: str, fma: str = "tw_fma", constant: str = "tw_set"
) -> str:
    """C text of the polynomial by Horner's rule, each step one call of ``fma(a, b, c)``; the
    function ``constant`` makes its arguments of numbers."""
    highest, *others = reversed(tuple(coefficients))
    text = f"{constant}({highest!r}f)"
    for coefficient in others:
        text = f"{fma}({text}, {variable}, {constant}({coefficient!r}f))"
    return text


def horner(coefficients: Iterable[float], variable: str, suffix: str = "f") -> str:
    """C text of the polynomial in the primary expression ``variable``, by Horner's rule; numbers
    have the ``suffix`` of their type."""
    highest, *others = reversed(tuple(coefficients))
    text = f"{highest!r}{suffix}"
    for coefficient in others:
        sign = "-" if coefficient < 0 else "+"
        text = f"({text} * {variable} {sign} {abs(coefficient)!r}{suffix})"
    return text
