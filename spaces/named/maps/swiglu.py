"""The gate of a gated layer."""

from tilewright.spaces.language import Program, program

EXAMPLE = "r=4096 c=1024"


def swiglu(r: int, c: int, dtype: str = "float32") -> Program:
    """``silu(gate) * up``."""
    return program("y[r, c] = silu(gate[r, c]) * up[r, c]", dtype=dtype, r=r, c=c)
