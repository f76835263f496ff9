"""Sums that are added up in blocks, so that their error does not grow: how long a block is, and how
blocks are added.

``tw_add_block`` adds a block to ``sum``, that of the blocks before, which rounding made too great
by ``excess`` (Kahan, Further remarks on reducing truncation errors, CACM 8, 1965). None is known of
an infinite sum, nor of one that has just become infinite.
"""

from __future__ import annotations

BLOCK = 64
"""Elements of a block, unless a thread has more in a step."""
FEW = 8
"""The most blocks whose plain sum is as near as each of them."""
HELPER = """\
TW_INLINE void tw_add_block(T &sum, T &excess, T block) {
  const T term = block - excess, total = sum + term, e = (total - sum) - term;
  sum = total;
  excess = e - e == (T)0 ? e : (T)0;
}
"""
"""The function, on the type ``T``."""
