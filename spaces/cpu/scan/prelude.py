"""The C that kernels of scans share: reductions that run along the lanes of a vector.

The first lane is that of the first column:

- ``tw_running_R(x)``: each lane and those before it, reduced by R, such as ``sum``;
- ``tw_final(x)``: the last lane, in all lanes;
- ``tw_behind(a, b)``: the last lane of ``a``, and all lanes of ``b`` but the last;
- ``tw_carry(sum, excess, block)``: adds a block to a long sum, as ``tw_add_block`` does.

For what runs backwards, the first three have twins whose names end with ``_back``, to which the
last lane is the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import lru_cache

from tilewright.spaces.cpu.rows import prelude as rows
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.lanes import added
from tilewright.spaces.cpu.vectors.reducers import identity, taken
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.prefixes import RUNNING

FORWARDS, BACKWARDS = "", "_back"
"""The ends of functions' names."""


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget, element: str) -> str:
    """Return the C text for kernels in ``element`` whose programs call ``functions``."""
    return rows.prelude(functions, target, element) + _scans(target.lanes(dtype(element).bytes))


def shared(lanes: int, preludes: Iterable[str]) -> str:
    """Return the definitions that are not those of rows if any of some preludes has them; else the
    empty string."""
    return _scans(lanes) if any(_scans(lanes) in text for text in preludes) else ""


@lru_cache(maxsize=8)
def _scans(lanes: int) -> str:
    text = added("tw_carry", "static inline __attribute__((always_inline, unused)) ")
    for way in (FORWARDS, BACKWARDS):
        for reducer in RUNNING:
            steps = range(lanes.bit_length() - 1)
            lines = [_halved(reducer, lanes, 1 << step, way) for step in steps]
            text += _function(f"tw_running_{reducer}{way}(vf x)", lines)
        last = _shuffle("x, x", lanes, [lanes - 1] * lanes, way)
        behind = _shuffle("a, x", lanes, range(lanes - 1, 2 * lanes - 1), way)
        text += _function(f"tw_final{way}(vf x)", [f"x = {last};"])
        text += _function(f"tw_behind{way}(vf a, vf x)", [f"x = {behind};"])
    return text


def _function(head: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"  {line}" for line in [*lines, "return x;"])
    return f"static inline vf {head} {{\n{body}\n}}\n"


def _halved(reducer: str, lanes: int, size: int, way: str) -> str:
    """Return the statement that joins the last lane of every second group of ``size`` to all lanes
    of the next one (Sklansky, Conditional-sum addition logic, IRE Transactions on Electronic
    Computers 9, 1960)."""
    order = [lane // size * size - 1 if lane & size else lanes for lane in range(lanes)]
    return taken(reducer, "x", _shuffle(f"x, {identity(reducer)}", lanes, order, way))


def _shuffle(vectors: str, lanes: int, order: Sequence[int], way: str) -> str:
    """Return the C of lanes of two vectors in an order, mirrored if the ``way`` is backwards."""
    if way == BACKWARDS:
        order = [n // lanes * lanes + lanes - 1 - n % lanes for n in reversed(order)]
    return f"tw_shuffle({vectors}, {', '.join(map(str, order))})"
