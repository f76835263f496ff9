"""Sums that are added up in blocks, so that their error does not grow with their length.

``tw_add_block`` adds a block to ``sum``, the sum of the blocks before, which rounding made too
large by ``excess`` (Kahan, Further remarks on reducing truncation errors, CACM 8, 1965). The excess
of an infinite sum, and of one that has just become infinite, is 0.
"""

from __future__ import annotations

BLOCK = 64
"""Elements of a block, unless a thread has more in a step."""
FEW = 8
"""The most blocks whose plain sum is as accurate as each of them."""
HELPER = """\
TW_INLINE void tw_add_block(T &sum, T &excess, T block) {
  const T term = block - excess, total = sum + term, e = (total - sum) - term;
  sum = total;
  excess = e - e == (T)0 ? e : (T)0;
}
"""
"""The C function ``tw_add_block`` on the type ``T``."""
