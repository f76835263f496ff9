"""The language of operators: programs of a few lines, and what they mean.

``program("y[r, c] = softmax[c](x[r, c])", r=4096, c=1024)`` reads one and refuses what has no
meaning, ``str(program)`` writes it, ``program.digest`` is its identity, and
:mod:`spaces.language.evaluation` computes it exactly.

Each line ``name[axes] = expression`` is a stage: one array, an element for each point of its axes.
An expression has numbers, axes as values, ``x[i, 2 * j + 1]``, ``+ - * / // %``, functions and
casts (:mod:`spaces.language.functions`), ``select(i < j, a, b)``, ``inside(x[i - 1], 0)`` for a
read that may leave its array, ``size(i, j)`` for the number of points, and reductions
``sum[k](...)``: sum, prod, max, min, argmax, argmin, and mean, var, softmax, logsumexp, which are
made of them. Indices are sums of multiples of axes, their quotients and remainders, and entries of
integer operands. The other lines are shown in :mod:`spaces.language.reading.reader`.
"""

from tilewright.spaces.language.program import Entries, Operand, Output, Program, Stage
from tilewright.spaces.language.reading.reader import program
from tilewright.spaces.workloads.array import Array

__all__ = ["Array", "Entries", "Operand", "Output", "Program", "Stage", "program"]
