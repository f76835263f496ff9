"""The C functions that kernels of rows call."""

from __future__ import annotations

from itertools import chain

from tilewright.spaces.cuda import scalar_math, wide
from tilewright.spaces.cuda.rows.reducers import helpers
from tilewright.spaces.cuda.rows.source import ENTRY, SATURATED
from tilewright.spaces.cuda.rows.values import calls_integers, computed_in
from tilewright.spaces.derivation.rows.passes import expressions
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.language.magnitude import magnitudes


def prelude(rows: Rows) -> str:
    """Return the definitions of all functions that a kernel of ``rows`` may call."""
    program = rows.program
    short = all(output.element.bytes <= 2 for output in program.outputs)
    functions = scalar_math.prelude({*scalar_math.ALWAYS, *program.functions}, short)
    entry = ENTRY if rows.gathers else ""
    entry += SATURATED if any(o.dtype == "int64" for o in program.operands) else ""
    bodies = [
        *chain.from_iterable(map(expressions, (*rows.online, *rows.plain))),
        *(o.value for o in rows.outputs),
    ]
    exact = wide.HELPERS if calls_integers(magnitudes(program), bodies) else ""
    return functions + helpers(computed_in(program)) + entry + exact
