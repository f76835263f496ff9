"""The rows of a product on the lanes of a warp, and reductions across lanes.

Matrix instructions leave sixteen rows of a product on the 32 lanes of a warp, two rows to a lane:
element ``e`` of a lane is of row ``lane / 4 + 8 * (e / 2 % 2)`` and of column ``2 * (lane % 4) + e
% 2 + 8 * (e / 4)``. Four lanes share a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.cuda.reducers import PLACES, joined, place_helpers
from tilewright.spaces.kernels.text import CUDA

IDENTITIES = {
    "sum": "0.0f", "prod": "1.0f", "max": "-TW_INFINITY", "min": "TW_INFINITY",
    "argmax": "-TW_INFINITY", "argmin": "TW_INFINITY",
}  # fmt: skip
FINITE = {"max": "tw::max_nan({}, -TW_LARGEST)", "min": "tw::min_nan({}, TW_LARGEST)"}
"""Extremes as corrections read them: an infinity of no elements becomes a finite number."""
REFERENCES = {"max": "tw_reference({}, -TW_INFINITY)", "min": "tw_reference({}, TW_INFINITY)"}
"""Extremes as elements are measured from them."""
EXTREMES = tuple(FINITE)
ROWS = 2
"""Rows of a lane in each slice of sixteen."""
APART = 8
"""The distance between the two rows of a lane."""

HELPERS = """\
#define TW_INFINITY tw::bits_float(0x7f800000u)
#define TW_LARGEST 3.402823466e38f
TW_INLINE float tw_reference(float best, float nothing) { return best == nothing ? 0.0f : best; }
TW_INLINE float tw_odd(float x, float a, float b) { return x * tw::fused(x * x, b, a); }
TW_INLINE float tw_odd(float x, float a, float b, float c, float d) {
  const float t = x * x;
  return x * tw::fused(t, tw::fused(t, tw::fused(t, d, c), b), a);
}
TW_INLINE float tw_tanh_by_power(float x) {
  return 1.0f - tw::reciprocal_approx(tw::fused(tw::exp2_approx(x), 0.5f, 0.5f));
}
"""
"""C macros and functions that chains use.

``TW_LARGEST`` is the largest finite number. ``tw_reference`` is the extreme that elements are
measured from, 0 where no element was better than nothing: then the exponential of an element of
minus infinity is zero, as under any other extreme. ``tw_odd`` are odd polynomials.
``tw_tanh_by_power`` is tanh(x), given the y for which exp(2 x) is 2**y.
"""


def helpers(has_places: bool) -> str:
    """Return the C functions that chains call; those that find places of keys, too, if asked
    for."""
    return HELPERS + place_helpers("float") * has_places


def over_rows(body: Sequence[str]) -> list[str]:
    """Return a loop of the lines over the rows ``h`` of a slice."""
    return CUDA.loop("h", ROWS, body, unroll=True)


def across_lanes(reducer: str, value: str, place: str = "") -> list[str]:
    """Print how a variable, with its ``place`` if it has one, is reduced across a row's four
    lanes."""
    if reducer in PLACES:
        others = (f"tw::shuffle_xor({value}, {n}), tw::shuffle_xor({place}, {n})" for n in (1, 2))
        return [f"tw_{reducer}({value}, {place}, {other});" for other in others]
    others = (f"tw::shuffle_xor({value}, {n})" for n in (1, 2))
    return [f"{value} = {joined(reducer, value, other)};" for other in others]


def selected(inside: str | None, value: str, other: str) -> str:
    """Return C text of ``value`` where ``inside`` holds, if that is to be tested, else of
    ``other``."""
    return f"(inside ? {value} : {other})" if inside else value
