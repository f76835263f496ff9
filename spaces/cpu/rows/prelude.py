"""The C text that all kernels of rows of one workload share: types, functions and reducers of
lanes."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from tilewright.spaces.cpu.abi import ABI_PRELUDE, FLOAT
from tilewright.spaces.cpu.isa import extremes
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import doubles, moves, simd, vector_math
from tilewright.spaces.cpu.vectors import lanes as across

_ALWAYS = frozenset({"floor", "max", "min"})
"""Functions that whole numbers and reducers of lanes need; they bring ``tw_select`` and more."""


_NUMBERS = """\
#define TW_NUMBER(x) tw_set(x##f)
#define TW_LARGEST 0x1.fffffep127f
"""


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget, element: str) -> str:
    """Return the C text for kernels in ``element``, float32 or float64, whose programs call
    ``functions``."""
    if element == "float64":
        lanes = target.lanes(8)
        types = doubles.prelude(target.isa, lanes)
        return ABI_PRELUDE + types + across.prelude(lanes, "double") + moves.numbers(lanes)
    lanes = target.lanes(FLOAT)
    return "".join(
        [
            ABI_PRELUDE,
            simd.prelude(target.isa, lanes, target.bf16_dot),
            vector_math.prelude(functions | _ALWAYS, lanes, extremes(target.isa)),
            _NUMBERS,
            across.prelude(lanes),
            moves.prelude(target.isa, lanes),
            moves.small(lanes),
        ]
    )
