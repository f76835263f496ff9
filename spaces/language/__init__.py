"""The language of operators: programs of a few lines, and what they mean.

``program("y[r, c] = softmax[c](x[r, c])", r=4096, c=1024)`` reads one, ``str(program)`` writes it,
and ``spaces.language.evaluation`` computes it exactly.
"""

from spaces.language.program import Array, Entries, Operand, Output, Program, Stage
from spaces.language.reader import program

__all__ = ["Array", "Entries", "Operand", "Output", "Program", "Stage", "program"]
