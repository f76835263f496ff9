"""The C functions that kernels of rows call."""

from __future__ import annotations

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.rows.reducers import helpers
from tilewright.spaces.cuda.rows.source import ENTRY, SATURATED
from tilewright.spaces.cuda.rows.values import computed_in
from tilewright.spaces.derivation.rows.view import Rows


def prelude(rows: Rows) -> str:
    """Return the definitions of all functions that a kernel of ``rows`` may call."""
    program = rows.program
    short = all(output.element.bytes <= 2 for output in program.outputs)
    functions = scalar_math.prelude({*scalar_math.ALWAYS, *program.functions}, short)
    entry = ENTRY if rows.gathers else ""
    entry += SATURATED if any(o.dtype == "int64" for o in program.operands) else ""
    return functions + helpers(computed_in(program)) + entry
