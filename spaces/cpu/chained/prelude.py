"""What all chained kernels of one workload share: what rows do, and whole numbers."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from spaces.cpu.isa import used
from spaces.cpu.rows import prelude as rows
from spaces.cpu.target import CpuTarget

_MOST = """\
static inline long tw_most(long a, long b) { return a > b ? a : b; }
"""
_ANY = """\
static inline int tw_any(vi mask) {
  int found = 0;
  for (int i = 0; i < TW_LANES; i++) found |= mask[i];
  return found != 0;
}
"""


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget) -> str:
    """The C text for kernels whose programs call ``functions``."""
    return rows.prelude(functions, target, "float32") + _MOST + own(target)


def own(target: CpuTarget) -> str:
    """The part of it that no other kernels have."""
    return used(target.isa) + _ANY
