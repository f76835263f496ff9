"""The C text that all chained kernels of one workload share: that of rows, and whole numbers."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from tilewright.spaces.cpu.abi import FLOAT, MOST
from tilewright.spaces.cpu.isa import power, unordered, used
from tilewright.spaces.cpu.rows import prelude as rows
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.lanes import across
from tilewright.spaces.cpu.vectors.reducers import BARE
from tilewright.spaces.numerics.polynomials import EXP2, fused_horner

_ANY = """\
static inline int tw_all_finite(const float *x, long rows, long stride, long n) {
  vi infinite = {0};
  for (long r = 0; r < rows; r++)
    for (long e = 0; e < n; e += TW_LANES) {
      const vf y = tw_load_most_float32(x + r * stride + e, n - e);
      infinite |= y - y != 0.0f;
    }
  int found = 0;
  for (int i = 0; i < TW_LANES; i++) found |= infinite[i];
  return !found;
}
static inline int tw_any(vi mask) {
  int found = 0;
  for (int i = 0; i < TW_LANES; i++) found |= mask[i];
  return found != 0;
}
"""
# exp(x) of an x that is not positive, as a power of two; zero where the result is below 2**-125.5.
# The rounding of log2(e) adds an error that grows with x.
_DECAY = f"""\
TW_INLINE vf tw_decay(vf x) {{
  vf y = tw_greater(tw_set(-87.5f), x);
  vf shifted = tw_fma(y, tw_set(1.44269504f), tw_set(12582912.0f));
  vf f = tw_fma(y, tw_set(1.44269504f), 12582912.0f - shifted);
  vf p = {fused_horner([2 * c for c in EXP2], "f")};
  return p * (vf)(((vu)shifted << 23) + 0x3f000000u);
}}
"""
_DECAY_BY_POWER = "TW_INLINE vf tw_decay(vf x) { return tw_power(x * 1.44269504f); }\n"


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget) -> str:
    """Return the C text for kernels whose programs call ``functions``."""
    return rows.prelude(functions, target, "float32") + MOST + own(target)


def own(target: CpuTarget) -> str:
    """Return the part of the text that is for chained kernels alone."""
    extremes = (bare.removeprefix("tw_") for bare in BARE.values())
    turned = "".join(across(name, f"tw_{name}(x, y)", target.lanes(FLOAT)) for name in extremes)
    instructions = used(target.isa) + unordered(target.isa)
    return instructions + turned + decay(target.isa) + _ANY


def decay(isa: str) -> str:
    """Return the C definition of ``tw_decay(x)``, which is exp(x) of an x that is not positive."""
    by_instructions = power(isa)
    return by_instructions + _DECAY_BY_POWER if by_instructions else _DECAY
